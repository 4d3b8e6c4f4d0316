// The walk through the open questions: what is asked now, what was answered here, and the way back. An answer takes its
// question off at once and goes to the server in its turn; what the server refuses is asked again.
import { api, type Schemas } from "./api";
import { counted } from "./format";
import { act, type Resource } from "./resource.svelte";
import { say } from "./said.svelte";

export type Question = Schemas["OpenQuestion"];
export type Says = Schemas["Says"];
export interface Answered {
  text: string;
  numbers: readonly number[];
  /** What was merged by it. */
  merged: readonly string[];
}

// With so few left of what is known, the next ones are asked for.
const FEW = 8;
const SAID: Record<Says, string> = { merge: "merged", separate: "kept separate", never: "never asked about again", later: "left for later" };

export class Reviewing {
  /** The latest first. */
  done = $state.raw<readonly Answered[]>([]);
  /** Whether the one that would go stays instead. */
  swapped = $state(false);
  #answered = $state.raw<ReadonlySet<number>>(new Set());
  /** What was merged into another here: whatever else is asked of it is asked anew, of the one that stays. */
  #merged = $state.raw<ReadonlySet<string>>(new Set());
  #later = $state.raw<readonly number[]>([]);
  #shown = $state<number | null>(null);
  #turn: Promise<void> = Promise.resolve();
  #page: Resource<Schemas["QuestionPage"]>;

  queue = $derived.by(() => this.#known.filter((one) => this.#isOpen(one)).toSorted((a, b) => this.#place(a) - this.#place(b)));
  left = $derived.by(() => Math.max(0, (this.#page.data?.total ?? 0) - this.#known.length + this.queue.length));
  /** A list that comes anew never exchanges what somebody is looking at. */
  question = $derived.by(() => this.queue.find((one) => one.number === this.#shown) ?? this.queue[0]);
  keep = $derived.by(() => this.question && (this.swapped ? this.question.other : this.question.keep));
  other = $derived.by(() => this.question && (this.swapped ? this.question.keep : this.question.other));
  group = $derived.by(() => this.queue.filter((one) => one.group === this.question?.group));

  constructor(page: Resource<Schemas["QuestionPage"]>) {
    this.#page = page;
    $effect(() => {
      if (this.question) this.#shown = this.question.number;
    });
    $effect(() => {
      const wanted = this.queue.length < FEW && this.left > this.queue.length;
      if (wanted && !page.loading) void this.#turn.then(() => page.reload());
    });
  }

  get #known(): readonly Question[] {
    return this.#page.data?.items ?? [];
  }

  #isOpen(one: Question): boolean {
    return !this.#answered.has(one.number) && !this.#merged.has(one.keep.id) && !this.#merged.has(one.other.id);
  }

  #place(one: Question): number {
    return this.#later.indexOf(one.number) + 1;
  }

  swap(): void {
    if (this.question) this.swapped = !this.swapped;
  }

  answer(says: Says, whole: boolean): void {
    const [question, keep, other] = [this.question, this.keep, this.other];
    if (!question || !keep || !other) return;
    const some = whole ? this.group : [question];
    const merged = says === "merge" && !whole ? [other.id] : [];
    this.#takeOff(some, says, merged);
    const answer = whole ? { group: question.group, answer: says } : { number: question.number, answer: says, keep: keep.id };
    const text = whole ? `${counted(some.length, "question")} of a group ${SAID[says]}` : told(says, keep.name, other.name);
    this.#inTurn(async () => {
      const taken = await this.#sent(() => api("post", "/api/v1/questions/answers", { body: { answers: [answer] } }));
      if (!taken || taken.refused.length) this.#putBack(some.map((one) => one.number), merged);
      if (taken?.answered.length) this.done = [{ text: `${text}.`, numbers: taken.answered, merged }, ...this.done];
      if (whole || question.group_size > 2 || taken?.refused.length) this.#page.reload();
    });
  }

  /** Undo an answer, by default the last one: its question is the one that is asked now. */
  back(one: Answered | undefined = this.done[0]): void {
    if (!one || !this.done.includes(one)) return;
    this.done = this.done.filter((known) => known !== one);
    this.#inTurn(async () => {
      const taken = await this.#sent(() => api("post", "/api/v1/questions/take-back", { body: { numbers: [...one.numbers] } }));
      if (!taken || taken.refused.length) this.done = [one, ...this.done];
      else this.#putBack(one.numbers, one.merged);
      [this.#shown, this.swapped] = [one.numbers[0] ?? null, false];
      this.#page.reload();
    });
  }

  /** What the server took and what it refused; a refusal is said. */
  async #sent(send: () => Promise<Schemas["AnswersTaken"]>): Promise<Schemas["AnswersTaken"] | undefined> {
    const taken = await act(send);
    if (taken?.refused[0]) say(taken.refused[0].message, { bad: true });
    return taken;
  }

  #takeOff(some: readonly Question[], says: Says, merged: readonly string[]): void {
    const numbers = some.map((one) => one.number);
    if (says === "later") this.#later = [...this.#later.filter((one) => !numbers.includes(one)), ...numbers];
    else this.#answered = new Set([...this.#answered, ...numbers]);
    this.#merged = new Set([...this.#merged, ...merged]);
    [this.#shown, this.swapped] = [null, false];
  }

  #putBack(numbers: readonly number[], merged: readonly string[]): void {
    this.#answered = new Set([...this.#answered].filter((one) => !numbers.includes(one)));
    this.#later = this.#later.filter((one) => !numbers.includes(one));
    this.#merged = new Set([...this.#merged].filter((one) => !merged.includes(one)));
  }

  #inTurn(does: () => Promise<void>): void {
    this.#turn = this.#turn.then(does);
  }
}

function told(says: Says, keep: string, other: string): string {
  if (keep === other) return says === "merge" ? `Merged two “${keep}” into one` : `The two “${keep}”: ${SAID[says]}`;
  if (says === "merge") return `Merged “${other}” into “${keep}”`;
  return `“${keep}” and “${other}”: ${SAID[says]}`;
}
