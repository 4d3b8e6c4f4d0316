// Numbers, times and names as people read them.
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

export const number = (value: number): string => value.toLocaleString("en");
/** A rate from 0 to 100, as people say it. */
export const percent = (rate: number): string => `${Math.round(rate)}%`;
export const share = (value: number): string => value.toFixed(2);

export function counted(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** Of a plan; where some of them no longer wait, both numbers. */
export function decisions(counts: Readonly<Record<string, number>>): string {
  const total = Object.values(counts).reduce((sum, one) => sum + one, 0);
  const waiting = counts["proposed"] ?? 0;
  return waiting && waiting < total ? `${number(waiting)} of ${counted(total, "decision")}` : counted(total, "decision");
}

export function ago(moment: string, now = Date.now()): string {
  const seconds = (new Date(moment).getTime() - now) / 1000;
  for (const [unit, length] of STEPS) {
    if (Math.abs(seconds) >= length) return RELATIVE.format(Math.trunc(seconds / length), unit);
  }
  return seconds > 5 ? "in a moment" : "just now";
}

export function moment(value: string): string {
  return new Date(value).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** `tag:react hooks` as `react hooks`: what a topic is gathered by needs no saying. */
export const topicName = (key: string): string => key.replace(/^tag:/, "");

const CALLED: Record<string, string> = { maintain: "maintenance", prune_weak_edges: "prune weak links", merge_parallel_edges: "merge parallel links", hand: "manual change" };
/** What a policy or a schedule is called. */
export const policyName = (name: string): string => CALLED[name] ?? words(name);

/** Who made it, where that is worth saying: not of whoever sits here, without a key of their own. */
export const by = (name: string): string => (["local", "user"].includes(name) ? "" : ` by ${name}`);

/** `merge_duplicate_concepts` as `merge duplicate concepts`. */
export const words = (name: string): string => name.replaceAll("_", " ");

export function plain(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

const STATES: Record<string, string> = { proposed: "waiting", stale: "out of date" };
/** What became of a plan or a decision, as people say it. */
export const fate = (status: string): string => STATES[status] ?? words(status);
