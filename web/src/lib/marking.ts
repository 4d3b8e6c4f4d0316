// Which words of a text a question speaks of, so that they can be marked. Nothing is taken for markup: a text comes back
// in pieces, each marked or not.
export interface Marked {
  text: string;
  hit: boolean;
}

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const SHORTEST = 3;
// Words of a question that tell nothing of what it is about; marked only where there is nothing else.
const COMMON = new Set("the and for are was were has have had not can did does how who whom why what when where which with from that this these those you your our their his her its about into".split(" "));
/** How much of a passage stands before what is asked for. */
const BEFORE = 60;
// Scripts without blanks between words: there a question's own characters are looked for.
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

export function marked(text: string, query: string): Marked[] {
  const words = (folded(query).match(WORD) ?? []).filter((word) => word.length >= SHORTEST || UNSPACED.test(word) || /\d/.test(word));
  const telling = words.filter((word) => !COMMON.has(word));
  const asked = telling.length ? telling : words;
  if (!asked.length) return [{ text, hit: false }];
  const found: Marked[] = [];
  let from = 0;
  for (const match of text.matchAll(WORD)) {
    for (const [start, end] of places(match[0], asked)) {
      const at = match.index + start;
      if (at > from) found.push({ text: text.slice(from, at), hit: false });
      found.push({ text: text.slice(at, match.index + end), hit: true });
      from = match.index + end;
    }
  }
  if (from < text.length) found.push({ text: text.slice(from), hit: false });
  return found;
}

/** A passage in one run of text, from a little before the first word that is asked for. */
export function around(passage: string, query: string): string {
  const text = passage.trim().replace(/\s+/g, " ");
  let before = 0;
  for (const piece of marked(text, query)) {
    if (piece.hit) break;
    before += piece.text.length;
  }
  if (before <= 2 * BEFORE || before === text.length) return text;
  return text.slice(text.indexOf(" ", before - BEFORE) + 1);
}

/** Where in a word a question is spoken of: all of it, or in unspaced scripts the part that is asked for. */
function places(word: string, asked: readonly string[]): [number, number][] {
  const plain = folded(word);
  if (UNSPACED.test(word) && plain.length === word.length) {
    const part = asked.find((one) => plain.includes(one));
    const start = part ? plain.indexOf(part) : -1;
    return part ? [[start, start + part.length]] : [];
  }
  return asked.some((one) => isOneWord(plain, one)) ? [[0, word.length]] : [];
}

/** The same word but for its ending: price and prices, run and running, party and parties. */
function isOneWord(a: string, b: string): boolean {
  if (a === b) return true;
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  if (short.length < SHORTEST || /\d/.test(short)) return false;
  const stem = short.length > SHORTEST ? short.replace(/[aeiouy]$/, "") : short;
  return long.startsWith(stem) && long.length - stem.length <= (stem.length > SHORTEST ? 4 : 1);
}

function folded(text: string): string {
  return text.normalize("NFD").replace(/\p{M}(?<![\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Devanagari}])/gu, "").toLocaleLowerCase();
}
