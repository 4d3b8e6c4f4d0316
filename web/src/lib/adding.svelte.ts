// What is being written anew (parts/New shows it); null where nothing is. Any view may ask for it.
import { here } from "./here.svelte";

export type What = "memory" | "case" | "concept";

export const adding = $state<{ what: What | null }>({ what: null });

export function add(what: What): void {
  if (here.visitor && here.may("write")) adding.what = what;
}
