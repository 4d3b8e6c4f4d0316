// A step of a history as a sentence: what was done, by whom, and why, in words that need no glossary.
import type { Schemas } from "./api";
import { words } from "./format";

type Entry = Schemas["HistoryEntry"];

const DONE: Record<string, string> = {
  add: "Added",
  archive: "Archived",
  restore: "Restored",
  exclude: "Kept out of recall",
  include: "Let into recall again",
  protect: "Protected",
  unprotect: "No longer protected",
  edit: "Edited",
  correct: "Corrected",
  link: "Linked",
  unlink: "Link removed",
  merge: "Merged",
  keep: "Took in another",
  prune: "Link pruned",
  undo: "Undone",
  create: "Created",
  reinforce: "Link made stronger",
};
const BY: Record<string, string> = { hand: "", undo: "", "": "" };
// What a hand's own step says where nobody gave a reason.
const UNSAID = /^(\w+ by hand|edit of .*|corrected by hand|memory added|case added|concept added|page added)$/;

export function sentence(entry: Entry): string {
  const done = DONE[entry.verb] ?? `${words(entry.verb).charAt(0).toUpperCase()}${words(entry.verb).slice(1)}`;
  const by = BY[entry.policy] ?? ` by ${words(entry.policy)}`;
  const why = UNSAID.test(entry.reason) ? "" : `: ${entry.reason.replace(/^takes back: /, "")}`;
  return `${done}${by}${why}`;
}
