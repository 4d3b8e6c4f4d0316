// Undoing a plan, or one decision of it; asked before, told after. Where later plans stand on top of it, they are shown,
// and undone with it if one wishes.
import { api, type Schemas } from "./api";
import { confirmed } from "./asking.svelte";
import { counted } from "./format";
import { here } from "./here.svelte";
import { act, asProblem } from "./resource.svelte";
import { say } from "./said.svelte";

const IN_THE_WAY = 409;

export async function undoPlan(plan: Schemas["Plan"]): Promise<void> {
  const number = plan.counts["applied"] ?? 0;
  const text = `${plan.title} (${counted(number, "decision")}). This puts everything back as it was; later changes stay.`;
  if (await confirmed({ title: "Undo this plan?", text, yes: "Undo" })) await undo(plan.id);
}

export async function undo(plan: string, decisions: number[] | null = null): Promise<void> {
  try {
    tell(await send(plan, decisions, false));
  } catch (reason) {
    const problem = asProblem(reason);
    const chain = problem.status === IN_THE_WAY && decisions === null ? await chainOf(plan) : [];
    if (chain.length < 2) return say(problem.message, { bad: true });
    if (await confirmed({ title: "Undo what came later too?", text: asked(chain), yes: `Undo ${counted(chain.length, "plan")}` }))
      await act(async () => tell(await send(plan, decisions, true)));
  }
}

function send(plan: string, decisions: number[] | null, with_later: boolean): Promise<Schemas["Outcome"]> {
  return api("post", "/api/v1/plans/{id}/undo", { path: { id: plan }, body: { decisions, with_later } });
}

async function chainOf(plan: string): Promise<readonly Schemas["TakenBack"][]> {
  return (await act(() => api("get", "/api/v1/plans/{id}/undo", { path: { id: plan } }))) ?? [];
}

function asked(chain: readonly Schemas["TakenBack"][]): string {
  const lines = chain.map((one, at) => `${at + 1}. ${one.title} (${counted(one.decisions, "decision")})`);
  return `Later plans changed the same things and have to be undone with it. In this order, as one plan:\n\n${lines.join("\n")}`;
}

function tell(outcome: Schemas["Outcome"]): void {
  say(outcome.repeated ? "That was undone already." : `Undone: ${counted(outcome.applied, "decision")}.`);
  here.epoch += 1;
}
