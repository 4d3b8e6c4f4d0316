// Undoing a plan, or one decision of it; asked before, told after. Where later plans stand on top of it, they are shown,
// and undone with it if one wishes.
import { api, type Schemas } from "./api";
import { confirmed } from "./asking.svelte";
import { counted } from "./format";
import { here } from "./here.svelte";
import { act, asProblem } from "./resource.svelte";
import { say } from "./said.svelte";

const IN_THE_WAY = 409;

type Word = "Undo" | "Redo";

/** What taking a plan back is called: an undo that is undone is done again. */
export function wordFor({ undoes, title }: Pick<Schemas["Plan"], "undoes" | "title">): Word {
  return undoes && title.startsWith("Undo: ") ? "Redo" : "Undo";
}

export async function undoPlan(plan: Schemas["Plan"]): Promise<void> {
  const word = wordFor(plan);
  const what = `${word === "Redo" ? plan.title.replace("Undo: ", "") : plan.title} (${counted(plan.counts["applied"] ?? 0, "decision")})`;
  const text = word === "Redo" ? `${what}. This does again what was undone; later changes stay.` : `${what}. This puts everything back as it was; later changes stay.`;
  if (await confirmed({ title: `${word} this plan?`, text, yes: word })) await undo(plan.id, null, word);
}

export async function undo(plan: string, decisions: number[] | null = null, word: Word = "Undo"): Promise<void> {
  try {
    tell(await send(plan, decisions, false), word);
  } catch (reason) {
    const problem = asProblem(reason);
    const chain = problem.status === IN_THE_WAY ? await chainOf(plan, decisions) : [];
    if (chain.length < 2) return say(problem.message, { bad: true });
    if (await confirmed({ title: "Undo what came later too?", text: asked(chain), yes: `Undo ${counted(chain.length, "plan")}` }))
      await act(async () => tell(await send(plan, decisions, true), "Undo"));
  }
}

function send(plan: string, decisions: number[] | null, with_later: boolean): Promise<Schemas["Outcome"]> {
  return api("post", "/api/v1/plans/{id}/undo", { path: { id: plan }, body: { decisions, with_later } });
}

async function chainOf(plan: string, decisions: number[] | null): Promise<readonly Schemas["TakenBack"][]> {
  return (await act(() => api("get", "/api/v1/plans/{id}/undo", { path: { id: plan }, query: { decisions } }))) ?? [];
}

function asked(chain: readonly Schemas["TakenBack"][]): string {
  const lines = chain.map((one, at) => `${at + 1}. ${one.title} (${counted(one.decisions, "decision")})`);
  return `Later plans changed the same things and have to be undone with it. In this order, as one plan:\n\n${lines.join("\n")}`;
}

function tell(outcome: Schemas["Outcome"], word: Word): void {
  const done = word === "Redo" ? "Redone" : "Undone";
  say(outcome.repeated ? `That was ${done.toLowerCase()} already.` : `${done}: ${counted(outcome.applied, "decision")}.`);
  here.epoch += 1;
}
