// Asking before something is done: `if (await confirmed({...})) ...`. One question at a time (parts/Confirm shows it).
export interface Question {
  title: string;
  text: string;
  yes: string;
  danger?: boolean;
}

export const asking = $state<{ question: Question | null; answer: (yes: boolean) => void }>({
  question: null,
  answer: () => {},
});

export function confirmed(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    asking.question = question;
    asking.answer = (yes) => {
      asking.question = null;
      resolve(yes);
    };
  });
}
