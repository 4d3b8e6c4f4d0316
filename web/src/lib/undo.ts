// Taking a plan back, or one decision of it; asked before, told after.
import { api, type Schemas } from "./api";
import { confirmed } from "./asking.svelte";
import { counted } from "./format";
import { here } from "./here.svelte";
import { act } from "./resource.svelte";
import { say } from "./said.svelte";

export async function undoPlan(plan: Schemas["Plan"]): Promise<void> {
  const number = plan.counts["applied"] ?? 0;
  const text = `“${plan.title}”, ${counted(number, "decision")}. Every row becomes as it was; what happened since stays.`;
  if (await confirmed({ title: "Undo this plan?", text, yes: "Undo" })) await undo(plan.id);
}

export async function undo(plan: string, decisions: number[] | null = null): Promise<void> {
  const outcome = await act(() => api("post", "/api/v1/plans/{id}/undo", { path: { id: plan }, body: { decisions } }));
  if (!outcome) return;
  say(outcome.repeated ? "That was undone already." : `Undone: ${counted(outcome.applied, "decision")}.`);
  here.epoch += 1;
}
