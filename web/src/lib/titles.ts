// What a node is called: its name; else its first heading, else its first line; a piece of a longer note by the note too.
const LONGEST = 90;
/** In a list, where the row cuts it: more than the widest one shows. */
export const IN_A_ROW = 300;
const BEGINNING = 200;

interface Titled {
  id: string;
  name: string | null;
  text: string | null;
  metadata?: unknown;
}

export function titleOf(node: Titled, longest = LONGEST): string {
  const title = node.name ?? (headline(node.text ?? "", longest) || node.id.slice(0, 8));
  const note = node.name === null ? noteOf(node) : "";
  return note && note !== title ? `${note} › ${title}` : title;
}

/** The note that a piece was cut from: the first of the headings that it stands below. */
function noteOf({ metadata }: Titled): string {
  const section = (metadata as { extra?: { section?: unknown } } | undefined)?.extra?.section;
  return typeof section === "string" ? unmarked(section.split(" / ")[0]!) : "";
}

// The same as graph/rules/titles.py, for texts that the page has whole. A heading with # before it, or with a line drawn below it:
// that is looked for first, else a long line would be gone through once for each letter in it.
const HEADING = /^#{1,6}\s+(.+?)\s*#*$|^(?![=\-~*|>]|\s*[-*+]\s)(?=.*\n[=~-]{3,}[ \t]*$)(.*\p{L}.*)\n[=~-]{3,}[ \t]*$/gmu;

const MARKED = /[#*`<[|~]|==|--|__|\.\. |^\s*[->+]/;

/** A node of which only the beginning is known, in one line. */
export function called({ id, label }: { id: string; label: string | null }): string {
  const plain = label && MARKED.test(label) ? unmarked(label) : label; // most are plain, and there may be thousands
  return plain || label || id.slice(0, 8);
}

export function headline(text: string, longest = LONGEST): string {
  for (const [, marked, underlined] of unlaid(text).matchAll(HEADING)) {
    const heading = unmarked(marked ?? underlined!);
    if (heading) return shortened(heading, longest);
  }
  return shortened(linesOf(text)[0]?.text ?? text.trim().split("\n", 1)[0] ?? "", longest);
}

function unlaid(text: string): string {
  return text.includes("<") ? text.replace(/<h([1-6])\b[^>]*>([^]*?)<\/h\1>/gi, "\n# $2\n").replace(LAYOUT, " ") : text;
}

function shortened(line: string, longest: number): string {
  return line.length > longest ? `${line.slice(0, longest)}…` : line;
}

/** What stands below the title, in one run: enough to know a note by. */
export function beginning(node: Titled): string {
  return below(node, IN_A_ROW).slice(0, BEGINNING);
}

/** All that stands below the title, in one run and without markup. */
export function below({ name, text }: Titled, longest = LONGEST): string {
  const title = name === null ? headline(text ?? "", longest) : "";
  const lines = linesOf(text ?? "");
  return joined(lines.filter((line, at) => line.text !== title && !(at === 0 && title.endsWith("…"))));
}

export function inOneRun(text: string): string {
  return joined(linesOf(text));
}

interface TextLine {
  text: string;
  /** Whether it stands for itself: a heading, or an item of a list; and what follows a heading. */
  own: boolean;
}

const OWN = /^\s*(?:[-*+]|\d+[.)]|#{1,6})\s/;

function linesOf(text: string): TextLine[] {
  const lines = unlaid(text).split("\n");
  return lines
    .map((line, at) => ({ text: unmarked(line), own: OWN.test(line) || /^\s*#/.test(lines[at - 1] ?? "") }))
    .filter((line) => SAYS.test(line.text));
}

/** Lines of one paragraph as one sentence after the other; what stands for itself is set apart. */
function joined(lines: readonly TextLine[]): string {
  return lines.map(({ text, own }, at) => (at === 0 ? text : `${own ? " · " : " "}${text}`)).join("");
}

/** Not only signs: a letter, a digit or a picture. */
const SAYS = /[\p{L}\p{N}\p{Extended_Pictographic}]/u;
// What READMEs lay themselves out with; anything else in angle brackets is what somebody wrote.
const LAYOUT = /<\/?(?:p|div|span|a|img|picture|source|br|hr|center|h[1-6]|b|i|em|strong|sub|sup|kbd|details|summary|table|t[rdh]|thead|tbody)\b[^>]*(?:>|$)|<!--.*?(?:-->|$)/gi;

/** A line, or the beginning of a text in one line, as it is read aloud: of a link its words, nothing of pictures, and no
    signs of headings, lists or emphasis. */
export function unmarked(line: string): string {
  return line
    .replace(LAYOUT, " ")
    .replace(/^\s*(?:```|~~~).*$/, "")
    .replace(/^\s*\.\. (?:\|[^|]*\|\s*)?(?:[\w-]+::|_).*$|^\s*:[\w-]+:(?:\s.*)?$/, "")
    .replace(/\[?!\[[^\]]*\](?:\([^)]*(?:\)|$)|\[[^\]]*\])(?:\](?:\([^)]*(?:\)|$)|\[[^\]]*\]))?/g, " ")
    .replace(/(?<!\S)\|\w(?:[\w .-]*\w)?\|_*(?!\S)/g, " ")
    .replace(/(?<!\S)(?:#{1,6}|[=~-]{3,})(?=\s|$)/g, " ")
    .replace(/!?\[\[(?:[^\]|]*\|)?([^\]]+)\]\]/g, "$1")
    .replace(/!?\[([^\]]*)\]\([^)]*(?:\)|$)|\[([^\]]+)\]\[[^\]]*\]/g, "$1$2")
    .replace(/(?::[\w-]+:)?`([^`<]+?)\s*(?:<[^`>]*>)?`__?(?!\w)/g, "$1")
    .replace(/(\*\*|__|~~|``|`)(?=\S)(.+?)(?<=\S)\1/g, "$2")
    .replace(/(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])/g, "$1")
    .replace(/^\s*(?:[-*+]|\d+[.)]|>)\s+/, "")
    .replace(/^\s*\|\s*(.*?)\s*\|\s*$/, "$1")
    .replace(/\s+/g, " ")
    .trim();
}

const MARKDOWN = /^(#{1,6}\s|[-*+]\s|\d+\.\s|>\s|```|\|.+\|)|\*\*[^*\n]+\*\*|\[\[[^\]\n]+\]\]|\[[^\]\n]+\]\([^)\s]+\)/m;

/** Whether a text is written in Markdown, so that showing it as such helps. */
export function isMarkdown(text: string): boolean {
  return MARKDOWN.test(text);
}
