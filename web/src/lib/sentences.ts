// A step of a history as a sentence: what was done, by whom, and why, in words that need no glossary.
import type { Schemas } from "./api";
import { counted, policyName, words } from "./format";

type Entry = Schemas["HistoryEntry"];

const DONE: Record<string, string> = {
  add: "Added",
  archive: "Archived",
  restore: "Restored",
  exclude: "Excluded from recall",
  include: "Included in recall again",
  protect: "Protected",
  unprotect: "No longer protected",
  edit: "Edited",
  correct: "Corrected",
  link: "Linked",
  unlink: "Link removed",
  merge: "Merged",
  keep: "Took in another",
  prune: "Link pruned",
  create: "Created",
  reinforce: "Link made stronger",
};
const BY: Record<string, string> = { hand: "", merge_pages: "", "": "" };
// What a hand's own step says where nobody gave a reason.
const UNSAID = /^(\w+ by hand|edit of .*|corrected by hand|memory added|case added|concept added|page added)$/;

/** What rules and figures decided, as a sentence. */
export function plainly(reason: string): string {
  return reason
    .replace(/^similarity ([\d.]+) >= ([\d.]+)/, "similarity $1 (at least $2)")
    .replace(/^strength (\S+) < (\S+), idle (\d+) days, its ends have other edges/, (_, ...found: string[]) => `${faded(found)}; both ends have other links`)
    .replace(/^strength (\S+) < (\S+), idle (\d+) days, its ends stay connected/, (_, ...found: string[]) => `${faded(found)}; both ends stay connected`)
    .replace(/^Inherited from parent \((.+) is [A-Z_]+\)/, "New, because its parent page $1 is new")
    .replace(/^Scoped search in \[(.*)\]/, "The same page as $1");
}

function faded([strength, bound, days]: string[]): string {
  return `strength ${strength}, below ${bound}; ${days === "0" ? "made or used today" : `unused for ${counted(Number(days), "day")}`}`;
}

const BACK = "takes back: ";

/** What taking back comes to, and what is taken back by it: twice is to do it again. */
export function turned(reason: string): { does: "Undo" | "Redo"; done: "Undone" | "Redone"; of: string } {
  const back = /^(takes back: )*/.exec(reason)![0];
  const of = reason.slice(back.length).replace(/ by hand$/, "");
  return (back.length / BACK.length) % 2 ? { does: "Undo", done: "Undone", of } : { does: "Redo", done: "Redone", of };
}

export function sentence(entry: Entry): string {
  if (entry.verb === "undo") {
    const { done, of } = turned(entry.reason);
    return `${done}: ${plainly(of)}`;
  }
  const done = DONE[entry.verb] ?? `${words(entry.verb).charAt(0).toUpperCase()}${words(entry.verb).slice(1)}`;
  const by = BY[entry.policy] ?? ` by ${policyName(entry.policy)}`;
  const why = UNSAID.test(entry.reason) ? "" : `: ${plainly(entry.reason)}`;
  return `${done}${by}${why}`;
}
