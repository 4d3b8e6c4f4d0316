// Changing many memories at once: one plan, told with its undo at hand.
import { api, type Schemas } from "./api";
import { counted } from "./format";
import { here } from "./here.svelte";
import { act } from "./resource.svelte";
import { say } from "./said.svelte";
import { undo } from "./undo";

export type ManyIn = Omit<Schemas["ManyIn"], "ids" | "reason">;

export async function changeMany(ids: readonly string[], wanted: Partial<ManyIn>, done: string): Promise<boolean> {
  const outcome = await act(() => api("post", "/api/v1/memories/change", { body: { ids: [...ids], ...wanted } }));
  if (!outcome) return false;
  const said = outcome.changed ? `${counted(outcome.changed, "memory", "memories")} ${done}.` : "Nothing to change.";
  const plan = outcome.plan_id;
  say(said, plan ? { act: { text: "Undo", does: () => void undo(plan) } } : {});
  here.epoch += 1;
  return true;
}
