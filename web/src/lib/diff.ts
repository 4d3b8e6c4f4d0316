// A plan as people read it: what comes (+), what changes (~), what goes (−); and texts line by line. The signs and the
// columns that are left unsaid are those of `recollect plan show` (rules/plan_text).
import type { Schemas } from "./api";
import { plain, words } from "./format";
import { plainly, turned } from "./sentences";

type Change = Schemas["Change"];
type Decision = Schemas["Decision"];
type Labels = Readonly<Record<string, string>>;

export type Sign = "+" | "~" | "−";
export type Spoken = "added" | "brought back" | "changed" | "removed";
export interface Value {
  name: string;
  before: string;
  after: string;
}
/** One row that a decision changes, and what changes in it. */
export interface Row {
  id: string;
  table: string;
  sign: Sign;
  spoken: Spoken;
  label: string;
  values: Value[];
}
export interface Line {
  sign: "+" | "−" | " " | "…";
  text: string;
}

const SILENT = new Set(["version", "updated_at", "changed_in", "gathered_at", "state", "checksum", "came_from"]);
/** What a row that is made, or taken away, has to say beyond its name. */
const TOLD_OF_WHOLE = ["text"];
const NEAR = 2;
const MOST_CELLS = 4_000_000;

export function signOf({ before, after }: Change): Sign {
  if (before === null) return "+";
  if (after === null) return "−";
  if ("status" in after) return after["status"] === "active" ? "+" : "−";
  return "~";
}

/** The sign in a word. What an undo makes, or what becomes active again, was there before. */
function spoken(change: Change, isUndo: boolean): Spoken {
  const sign = signOf(change);
  if (sign === "+") return isUndo || change.before !== null ? "brought back" : "added";
  return sign === "~" ? "changed" : "removed";
}

/** The subject first, then the other rows. */
export function rowsOf(decision: Decision, labels: Labels): Row[] {
  const rows = decision.changes.map((change) => ({
    id: change.id,
    table: change.table,
    sign: signOf(change),
    spoken: spoken(change, decision.verb === "undo"),
    label: labels[change.id] ?? `${change.table} ${change.id.slice(0, 8)}`,
    values: valuesOf(change),
  }));
  return [...rows.filter((row) => row.id === decision.subject), ...rows.filter((row) => row.id !== decision.subject)];
}

export function valuesOf({ before, after }: Pick<Change, "before" | "after">): Value[] {
  const whole = before === null || after === null;
  const names = Object.keys(after ?? before ?? {}).filter((name) => (whole ? TOLD_OF_WHOLE.includes(name) : !SILENT.has(name)));
  return names.flatMap((name) => inside(name, before?.[name], after?.[name]));
}

/** A value, or the parts of it that differ where it has parts. */
function inside(name: string, before: unknown, after: unknown): Value[] {
  if (!hasParts(before) || !hasParts(after)) return [{ name, before: said(before), after: said(after) }];
  const parts = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((part) => !SILENT.has(part));
  return parts.map((part) => ({ name: part, before: said(before[part]), after: said(after[part]) })).filter((one) => one.before !== one.after);
}

function hasParts(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function said(value: unknown): string {
  if (Array.isArray(value)) return value.map(plain).join(", ");
  return value === null || value === undefined ? "" : plain(value);
}

/** What some decisions come to, in plain words; each still has its own reason. */
const SORTS: { verb: string; reason: RegExp; says: string; undone: string }[] = [
  { verb: "prune", reason: /^strength .*, idle /, says: "Weak links nobody used", undone: "weak links nobody used" },
  { verb: "link", reason: /^similarity /, says: "Similar pairs to link", undone: "links between similar pairs" },
  { verb: "gather", reason: / has [\d,]+ members?(:|$)/, says: "Topics found", undone: "topics" },
  { verb: "merge", reason: /nothing speaks against it$/, says: "Clear duplicates to merge", undone: "merged duplicates" },
];

/** What is known of its sort; what is undone is known by its reason alone. */
function known({ verb, reason }: Decision): string | undefined {
  const { does, of } = verb === "undo" ? turned(reason) : { does: "", of: reason };
  const sort = SORTS.find((one) => one.reason.test(of) && (does || one.verb === verb));
  return sort && (does ? `${does}: ${sort.undone}` : sort.says);
}

/** What sort of reason it is: the reason without the figures and names that differ from decision to decision. */
export function sortOf(decision: Decision): string {
  const sort = known(decision);
  if (sort) return sort;
  const reason = reasonOf(decision)
    .replace(/'[^']*'|"[^"]*"|“[^”]*”|\[[^\]]*\]/g, "…")
    .replace(/[-+]?\d[\d.,]*(e[-+]?\d+)?%?/gi, "…")
    .replace(/…(\s…)+/g, "…");
  return titled(decision, reason);
}

/** A decision that stands alone: what it does, and why. */
export function titleOf(decision: Decision): string {
  return titled(decision, reasonOf(decision));
}

/** Why, in plain words; of an undo, what it takes back. */
export function reasonOf({ verb, reason }: Decision): string {
  return plainly(verb === "undo" ? turned(reason).of : reason);
}

/** `Archive: nobody asks for it`; that somebody did it by hand goes without saying. */
function titled({ verb, reason: written }: Decision, reason: string): string {
  const does = verb === "undo" ? turned(written).does : words(verb).replace(/^./, (first) => first.toUpperCase());
  return / by hand$/.test(reason) ? does : `${does}: ${reason}`;
}

export interface Group {
  title: string;
  decisions: Decision[];
}

/** Decisions by their sort of reason, in their order; what stands alone has its own reason as its title. */
export function grouped(decisions: readonly Decision[]): Group[] {
  const sorts = new Map<string, Decision[]>();
  for (const one of decisions) {
    const sort = sortOf(one);
    if (!sorts.get(sort)?.push(one)) sorts.set(sort, [one]);
  }
  return [...sorts].map(([sort, some]) => ({
    title: some.length === 1 && !known(some[0]!) ? titleOf(some[0]!) : sort,
    decisions: some,
  }));
}

// -- texts, line by line

export function isLong({ before, after }: Value): boolean {
  return [before, after].some((text) => text.length > 160 || text.includes("\n"));
}

/** The lines of two texts: those of both, those that went, those that came; what is far from any change is left out. */
export function linesBetween(before: string, after: string): Line[] {
  const [old, young] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < old.length && head < young.length && old[head] === young[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, young.length) - head && old.at(-1 - tail) === young.at(-1 - tail)) tail += 1;
  const both = (texts: string[]): Line[] => texts.map((text) => ({ sign: " ", text }));
  const middle = between(old.slice(head, old.length - tail), young.slice(head, young.length - tail));
  return nearChanges([...both(old.slice(0, head)), ...middle, ...both(tail ? old.slice(-tail) : [])]);
}

/** A text's last line ends, and none follows it. */
function linesOf(text: string): string[] {
  return text ? text.replace(/\n$/, "").split("\n") : [];
}

/** By the longest common sequence of lines; texts too long for that are shown as one that went and one that came. */
function between(old: string[], young: string[]): Line[] {
  const gone = (texts: string[]): Line[] => texts.map((text) => ({ sign: "−", text }));
  const come = (texts: string[]): Line[] => texts.map((text) => ({ sign: "+", text }));
  if (old.length * young.length > MOST_CELLS) return [...gone(old), ...come(young)];
  const common = old.map(() => new Uint32Array(young.length + 1));
  common.push(new Uint32Array(young.length + 1));
  for (let a = old.length - 1; a >= 0; a -= 1)
    for (let b = young.length - 1; b >= 0; b -= 1)
      common[a]![b] = old[a] === young[b] ? common[a + 1]![b + 1]! + 1 : Math.max(common[a + 1]![b]!, common[a]![b + 1]!);
  const lines: Line[] = [];
  let [a, b] = [0, 0];
  while (a < old.length && b < young.length) {
    const isBoth = old[a] === young[b];
    const goes = !isBoth && common[a + 1]![b]! >= common[a]![b + 1]!;
    lines.push({ sign: isBoth ? " " : goes ? "−" : "+", text: isBoth || goes ? old[a]! : young[b]! });
    if (isBoth || goes) a += 1;
    if (isBoth || !goes) b += 1;
  }
  return [...lines, ...gone(old.slice(a)), ...come(young.slice(b))];
}

function nearChanges(lines: Line[]): Line[] {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - NEAR), at + NEAR + 1).some((line) => line.sign !== " "));
  const shown: Line[] = [];
  lines.forEach((line, at) => {
    if (near[at]) shown.push(line);
    else if (shown.at(-1)?.sign !== "…") shown.push({ sign: "…", text: "" });
  });
  return shown;
}

/** A unified diff, as the API gives it, without its heading. */
export function linesOfUnified(diff: string): Line[] {
  const signs: Record<string, Line["sign"]> = { "+": "+", "-": "−", "@": "…" };
  return diff
    .split("\n")
    .slice(2)
    .map((line) => ({ sign: signs[line[0] ?? " "] ?? " ", text: line.startsWith("@") ? "" : line.slice(1) }));
}
