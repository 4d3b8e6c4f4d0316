// A page's text taken apart for showing: headings, lists, tables, code, and links within lines. The HTML that only lays a
// README out is left away, what else is not understood stays as it was written, and nothing is ever taken for markup of
// the browser.
export type Piece =
  | { kind: "text" | "code" | "strong" | "em" | "picture"; text: string }
  | { kind: "link"; target: string; text: string; relation: string | null }
  | { kind: "address"; href: string; text: string };

/** `mark` is the number of an item that has one. */
type Item = { depth: number; mark: string | null; pieces: Piece[] };
type Cell = { heading: boolean; pieces: Piece[] };

export type Block =
  | { kind: "heading"; level: number; pieces: Piece[] }
  | { kind: "list"; items: Item[] }
  | { kind: "lines" | "quote"; pieces: Piece[] }
  | { kind: "rule" }
  | { kind: "verbatim"; text: string }
  | { kind: "table"; rows: Cell[][] };

// Relations that say something of the page itself: they name no other page (rules/pages).
const PROPERTIES = new Set(["source", "domain", "last_updated", "github_url"]);
const HEADING = /^(#{1,6})\s+(.+?)\s*#*$|^(={1,6})\s*([^=\s].*?)\s*\3$/;
const ITEM = /^(\s*)([-*+•]+|\d+[.)])\s+(.*)$/;
const FENCE = /^\s*(```|~~~)/;
/** The line below the headings of a Markdown table. */
const RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const TAG = /^\s*<(syntaxhighlight|source|pre|math|nowiki)\b[^>]*>/i;
/** The line below a heading of its own line, and one that stands by itself. */
const UNDERLINE = /^(={3,}|-{3,})\s*$/;
const LINE = /^\s*([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^\s*>\s?/;
// A picture is not fetched: what it shows is said, and where it was a link, it leads on.
const PICTURE = /(\[)?!\[([^\[\]\n]*)\]\([^\s()]*(?:\s+"[^"\n]*")?\)(?:\]\((https?:\/\/[^\s()]+)\))?/;
const EMPHASIS = /(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])|(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])|(?<!')''(?=\S)([^'\n]+?)(?<=\S)''(?!')/;
const PIECE = new RegExp(`${PICTURE.source}|${EMPHASIS.source}|${/`([^`\n]+)`|\[\[([^\[\]\n]+)\]\]|\*\*([^*\n]+)\*\*|'''([^'\n]+)'''|\[([^\[\]\n]*)\]\(([^\s()]+)\)|(https?:\/\/[^\s<>()\]|]+[^\s<>()\]|.,;:!?])/.source}`, "g");

export function blocks(text: string): Block[] {
  const lines = text.split("\n");
  const found: Block[] = [];
  let at = frontMatter(lines, found);
  while (at < lines.length) at = next(lines, at, found);
  return found;
}

function frontMatter(lines: string[], found: Block[]): number {
  const end = lines[0]?.trimEnd() === "---" ? lines.findIndex((line, at) => at > 0 && line.trimEnd() === "---") : -1;
  if (end > 0) found.push({ kind: "verbatim", text: lines.slice(1, end).join("\n") });
  return end + 1;
}

/** One block from here on; where the next begins. */
function next(lines: string[], at: number, found: Block[]): number {
  const line = lines[at]!;
  if (!line.trim()) return at + 1;
  if (FENCE.test(line)) return verbatim(lines, at, (other) => other.trim() === FENCE.exec(line)![1], found);
  const tag = TAG.exec(line);
  if (tag) return verbatim(lines, at, (other) => other.includes(`</${tag[1]}>`), found, line);
  if (line.startsWith("{|")) return table(lines, at, found);
  if (isRuled(lines, at)) return ruled(lines, at, found);
  if (QUOTE.test(line)) return quote(lines, at, found);
  if (LINE.test(line)) return found.push({ kind: "rule" }), at + 1;
  const heading = HEADING.exec(line);
  if (heading) found.push({ kind: "heading", level: (heading[1] ?? heading[3])!.length, pieces: pieces((heading[2] ?? heading[4])!) });
  const item = heading ? null : ITEM.exec(line);
  if (item) return listed(lines, at, item, found);
  return heading ? at + 1 : paragraph(lines, at, found);
}

/** An item with the indented lines that go on with it. */
function listed(lines: string[], at: number, item: RegExpExecArray, found: Block[]): number {
  let end = at + 1;
  while (/^\s{2,}\S/.test(lines[end] ?? "") && !begins(lines[end]!)) end += 1;
  const text = [item[3]!, ...lines.slice(at + 1, end).map((line) => line.trim())].join(" ");
  const goesOn = at > 0 && lines[at - 1]!.trim() !== "";
  listIn(found, goesOn).push({ depth: depthOf(item), mark: /\d/.test(item[2]!) ? item[2]! : null, pieces: pieces(text) });
  return end;
}

/** The items of the list that goes on, or of a new one. */
function listIn(found: Block[], goesOn: boolean): Item[] {
  const last = found.at(-1);
  if (goesOn && last?.kind === "list") return last.items;
  const list = { kind: "list" as const, items: [] };
  found.push(list);
  return list.items;
}

function verbatim(lines: string[], at: number, ends: (line: string) => boolean, found: Block[], opening = ""): number {
  const inOne = opening !== "" && ends(opening);
  let end = at + 1;
  while (!inOne && end < lines.length && !ends(lines[end]!)) end += 1;
  found.push({ kind: "verbatim", text: inOne ? opening : lines.slice(at + 1, end).join("\n") });
  return inOne ? at + 1 : end + 1;
}

/** A table of a wiki: rows begin with `|-`, headings with `!`, cells with `|`; lines below a cell belong to it. */
function table(lines: string[], at: number, found: Block[]): number {
  const end = lines.findIndex((line, place) => place > at && line.startsWith("|}"));
  const inside = lines.slice(at + 1, end < 0 ? lines.length : end);
  const rows: { heading: boolean; text: string }[][] = [[]];
  for (const line of inside) {
    const row = rows.at(-1)!;
    if (line.startsWith("|-")) rows.push([]);
    else if (/^[!|]/.test(line)) row.push(...line.slice(1).split(/!!|\|\|/).map((text) => ({ heading: line[0] === "!", text: text.trim() })));
    else if (row.length) row[row.length - 1]!.text += `\n${line}`;
  }
  const cells = rows.filter((row) => row.length).map((row) => row.map((cell) => cellOf(cell.text, cell.heading)));
  if (cells.length) found.push({ kind: "table", rows: cells });
  return end < 0 ? lines.length : end + 1;
}

/** A cell; the items of a list in it are lines with a dot. */
function cellOf(text: string, heading: boolean): Cell {
  return { heading, pieces: pieces(text.trim().replace(/^[*-]\s+/gm, "• ")) };
}

/** Whether a Markdown table begins here: a line with bars, and a rule below it. */
function isRuled(lines: string[], at: number): boolean {
  const below = lines[at + 1] ?? "";
  return lines[at]!.includes("|") && below.includes("|") && RULE.test(below);
}

function ruled(lines: string[], at: number, found: Block[]): number {
  let end = at + 2;
  while (end < lines.length && lines[end]!.includes("|")) end += 1;
  const cells = (line: string, heading: boolean) =>
    line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((text) => cellOf(text.replaceAll("\\|", "|"), heading));
  const body = lines.slice(at + 2, end).map((line) => cells(line, false));
  found.push({ kind: "table", rows: [cells(lines[at]!, true), ...body] });
  return end;
}

function paragraph(lines: string[], at: number, found: Block[]): number {
  const underline = UNDERLINE.exec(lines[at + 1] ?? "");
  if (underline) return found.push({ kind: "heading", level: underline[1]![0] === "=" ? 1 : 2, pieces: pieces(lines[at]!) }), at + 2;
  let end = at + 1;
  while (end < lines.length && lines[end]!.trim() && !begins(lines[end]!) && !isRuled(lines, end)) end += 1;
  const text = unlaid(lines.slice(at, end).join("\n")).replace(/^\n/, "");
  if (text.trim()) found.push({ kind: "lines", pieces: pieces(text) });
  return end;
}

const ANCHOR = /<a\b[^>]*?\bhref="(https?:[^"\s()]+)"[^>]*>([^]*?)<\/a>/gi;
const LAYOUT = /<\/?(?:p|div|span|a|img|picture|source|br|hr|center|b|i|em|strong|sub|sup|h[1-6])\b(?:\s[^<>]*)?>|<!--[^]*?-->/gi;

/** Without the tags that only lay out: of a picture what it shows, of a link its words and where it leads. */
function unlaid(text: string): string {
  if (!/<[a-z!/]/i.test(text)) return text;
  const parts = text.split(/(`[^`]*`)/); // what is code stays
  return parts.map((part, at) => (at % 2 ? part : plainer(part))).join("");
}

function plainer(text: string): string {
  return text
    .replace(/<img\b[^<>]*?\balt="([^"]*)"[^<>]*>/gi, "$1")
    .replace(ANCHOR, (_, href: string, inside: string) => {
      const words = inside.replace(LAYOUT, "").replace(/[[\]\n]/g, " ").trim();
      return words && `[${words}](${href})`;
    })
    .replace(/<br\s*\/?>/gi, "\n")
    .replace(LAYOUT, "")
    .replace(/\n\s*\n/g, "\n")
    .replace(/^[ \t]+/gm, "");
}

function quote(lines: string[], at: number, found: Block[]): number {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end]!)) end += 1;
  found.push({ kind: "quote", pieces: pieces(lines.slice(at, end).map((line) => line.replace(QUOTE, "")).join("\n")) });
  return end;
}

function begins(line: string): boolean {
  return HEADING.test(line) || QUOTE.test(line) || LINE.test(line) || ITEM.test(line) || FENCE.test(line) || TAG.test(line) || line.startsWith("{|");
}

function depthOf([, indent = "", mark = ""]: RegExpExecArray): number {
  return /^[*+-]+$/.test(mark) && mark.length > 1 ? mark.length - 1 : Math.floor(indent.length / 2);
}

export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(PIECE)) {
    if (match.index > from) found.push({ kind: "text", text: text.slice(from, match.index) });
    found.push(piece(match));
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ kind: "text", text: text.slice(from) });
  return found;
}

function piece([whole, isLink, shows, leads, star, under, wiki, code, link, stars, quotes, label, path, address]: RegExpExecArray): Piece {
  if (shows !== undefined && leads && isLink) return { kind: "address", href: leads, text: shows || leads };
  if (shows !== undefined) return leads || isLink ? { kind: "text", text: whole } : { kind: "picture", text: shows };
  const leaning = star ?? under ?? wiki;
  if (leaning !== undefined) return { kind: "em", text: leaning };
  if (code !== undefined) return { kind: "code", text: code };
  if (link !== undefined) return wikilink(link);
  if (stars !== undefined || quotes !== undefined) return { kind: "strong", text: (stars ?? quotes)! };
  if (address !== undefined) return { kind: "address", href: address, text: address };
  if (/^https?:\/\//.test(path!)) return { kind: "address", href: path!, text: label || path! };
  // A path to another file is a link to that page; anything else (javascript:, data:) is only what it says.
  if (/^[a-z][a-z0-9+.-]*:/i.test(path!)) return { kind: "text", text: whole };
  return { kind: "link", target: decoded(path!).replace(/[#?].*$/, ""), text: label || path!, relation: null };
}

function wikilink(inside: string): Piece {
  const [, relation, rest] = /^([\w-]+)::(.*)$/.exec(inside) ?? [null, null, inside];
  const [target = "", ...labels] = rest!.split("|");
  if (relation && PROPERTIES.has(relation)) return property(target, labels);
  return { kind: "link", target: target.replace(/#.*$/, "").trim(), text: labels.at(-1)?.trim() || target.trim(), relation: relation ?? null };
}

function property(value: string, labels: string[]): Piece {
  const href = [value, ...labels].find((one) => /^https?:\/\//.test(one));
  const text = labels.find((one) => one !== href) ?? value;
  return href ? { kind: "address", href, text } : { kind: "text", text: value };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
