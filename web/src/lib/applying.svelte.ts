// Carrying a plan out while one can see how far it is. A run goes on at the server whether anybody watches or not, so a
// page that is opened meanwhile finds it and watches too.
import { api, type Schemas } from "./api";
import { counted } from "./format";
import { here } from "./here.svelte";
import { act } from "./resource.svelte";
import { planLink, route } from "./route.svelte";
import { say } from "./said.svelte";
import { undo } from "./undo";

const AGAIN_MS = 300;
export const PAGES = "merge_pages";

type Head = Pick<Schemas["Plan"], "id" | "policy">;

export class Applying {
  /** The run that is watched. */
  run = $state.raw<Schemas["Run"]>();
  busy = $state(false);
  #gone = false;

  /** Nobody looks any more. */
  leave(): void {
    this.#gone = true;
  }

  async apply(plan: Head): Promise<void> {
    this.busy = true;
    await act(() => (plan.policy === PAGES ? this.#pages(plan.id) : this.#any(plan.id)));
    this.busy = false;
    here.epoch += 1;
  }

  /** Watch a run to its end. */
  async follow(id: string): Promise<void> {
    do {
      this.run = await api("get", "/api/v1/runs/{id}", { path: { id } });
    } while (this.run.status === "running" && !this.#gone && (await patience()));
  }

  async #any(id: string): Promise<void> {
    const begun = await api("post", "/api/v1/plans/{id}/apply", { path: { id }, query: { wait: false }, body: { decline: [] } });
    if ("url" in begun) await this.follow(begun.run_id);
    if (this.#gone) return;
    const report = this.run?.report ?? begun;
    tell(id, number(report, "applied"), number(report, "stale"), number(report, "failed"));
  }

  /** Pages are tried again where their audit objects, so this is answered only when it is done; its runs tell how far. */
  async #pages(id: string): Promise<void> {
    const done = api("post", "/api/v1/pages/plans/{id}/apply", { path: { id }, body: { decline: [] } });
    let isDone = false;
    const ended = done.finally(() => (isDone = true));
    ended.catch(() => {}); // told where it is awaited
    while (!isDone && !this.#gone && (await Promise.race([patience(), ended.then(() => false)]))) {
      this.run = (await api("get", "/api/v1/runs", { query: { plan: id, limit: 1 } }))[0];
    }
    const { outcome, plans, result } = await done;
    tell(outcome.plan_id, outcome.applied, outcome.stale.length, Object.keys(result.failed).length);
    const last = plans.at(-1);
    if (last && last !== id && !this.#gone) route.go(planLink(last));
  }
}

function tell(plan: string, applied: number, stale: number, failed: number): void {
  const parts = [counted(applied, "decision applied", "decisions applied")];
  if (stale) parts.push(`${stale.toLocaleString("en")} out of date`);
  if (failed) parts.push(`${failed.toLocaleString("en")} failed`);
  say(`${parts.join(", ")}.`, { bad: failed > 0, ...(applied && { act: { text: "Undo", does: () => void undo(plan) } }) });
}

function number(report: object, name: string): number {
  const value: unknown = (report as Record<string, unknown>)[name];
  return Array.isArray(value) ? value.length : Number(value ?? 0);
}

function patience(): Promise<true> {
  return new Promise((resolve) => setTimeout(() => resolve(true), AGAIN_MS));
}
