// What a node is called: its name; else its first heading, else its first line.
const LONGEST = 90;
const BEGINNING = 200;

interface Titled {
  id: string;
  name: string | null;
  text: string | null;
}

export function titleOf(node: Titled): string {
  return node.name ?? (headline(node.text ?? "") || node.id.slice(0, 8));
}

export function headline(text: string): string {
  const heading = /^#{1,6}\s+(.+?)\s*#*$/m.exec(text)?.[1];
  const line = unmarked(heading ?? text.trim().split("\n", 1)[0] ?? "");
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

/** What stands below the title, in one run: enough to know a note by. */
export function beginning(node: Titled): string {
  return below(node).slice(0, BEGINNING);
}

/** All that stands below the title, in one run and without markup. */
export function below({ name, text }: Titled): string {
  const title = name === null ? headline(text ?? "") : "";
  const lines = linesOf(text ?? "");
  return lines.filter((line, at) => line !== title && !(at === 0 && title.endsWith("…"))).join(" ");
}

export function inOneRun(text: string): string {
  return linesOf(text).join(" ");
}

function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => unmarked(line.replace(/^#{1,6}\s+/, "")))
    .filter(Boolean);
}

/** A line as it is read aloud: of a link its words, and no signs of lists or of emphasis. */
export function unmarked(line: string): string {
  return line
    .replace(/!?\[\[(?:[^\]|]*\|)?([^\]]+)\]\]/g, "$1")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/(\*\*|__|~~|`)(?=\S)(.+?)(?<=\S)\1/g, "$2")
    .replace(/^\s*(?:[-*+]|\d+[.)]|>)\s+/, "")
    .trim();
}

const MARKDOWN = /^(#{1,6}\s|[-*+]\s|\d+\.\s|>\s|```|\|.+\|)|\*\*[^*\n]+\*\*|\[\[[^\]\n]+\]\]|\[[^\]\n]+\]\([^)\s]+\)/m;

/** Whether a text is written in Markdown, so that showing it as such helps. */
export function isMarkdown(text: string): boolean {
  return MARKDOWN.test(text);
}
