// What the page tells in passing: done, refused; with undo at hand where there is one.
const STAYS_MS = 8000;

export interface Said {
  id: number;
  text: string;
  bad: boolean;
  link?: { text: string; href: string };
  act?: { text: string; does: () => void };
}

let last = 0;
export const said = $state<Said[]>([]);

export function say(text: string, more: Partial<Omit<Said, "id" | "text">> = {}): void {
  const id = ++last;
  said.push({ id, text, bad: false, ...more });
  setTimeout(() => unsay(id), more.bad ? 2 * STAYS_MS : STAYS_MS);
}

export function unsay(id: number): void {
  const at = said.findIndex((one) => one.id === id);
  if (at >= 0) said.splice(at, 1);
}
