// What a node is called: its name; else its first heading, else its first line.
const LONGEST = 90;

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
  const line = heading ?? text.trim().split("\n", 1)[0] ?? "";
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

const MARKDOWN = /^(#{1,6}\s|[-*+]\s|\d+\.\s|>\s|```|\|.+\|)|\*\*[^*\n]+\*\*|\[\[[^\]\n]+\]\]|\[[^\]\n]+\]\([^)\s]+\)/m;

/** Whether a text is written in Markdown, so that showing it as such helps. */
export function isMarkdown(text: string): boolean {
  return MARKDOWN.test(text);
}
