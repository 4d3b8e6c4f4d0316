// How the graph looks: the colours of the theme, how a name is written, and the marks of protected edges and bridges.
import type { Schemas } from "../lib/api";

type Kind = Schemas["Kind"];

export interface Look {
  topics: readonly string[];
  kinds: Record<Kind, string>;
  topic: string;
  strong: string;
  middling: string;
  weak: string;
  contains: string;
  faded: string;
  ink: string;
  ground: string;
  accent: string;
}

export const STRONG = 0.7;
export const WEAK = 0.3;
// Told apart on both grounds, also by most who see fewer colours; what is beyond them is of no colour.
export const TOPIC_COLOURS = ["#4e79a7", "#e08214", "#3f9a4f", "#a65fa8", "#2aa5a0", "#c2546b", "#9c755f", "#8a9a2b", "#7a6fd0", "#d08fb0"];
const MARGIN_PX = 6;
const FONT = "12px system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
const LINE_PX = 15;
const LONGEST = 24;
// On a phone a long name finds no room among the nodes.
const [NARROW_PX, LONGEST_NARROW] = [500, 14];
// A mark needs room: on a shorter line it would hide what it marks.
const ROOM_PX = 26;
export const MARK_PX = 4.2;

/** The colours of this theme, as the style sheet has them. */
export function lookNow(): Look {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    topics: TOPIC_COLOURS,
    kinds: { memory: colour("part-1"), concept: colour("part-3"), page: colour("part-4"), case: colour("part-5") },
    topic: colour("edge"),
    strong: colour("strong"),
    middling: colour("middling"),
    weak: colour("weak"),
    contains: colour("line"),
    faded: colour("line"),
    ink: colour("ink"),
    ground: colour("panel"),
    accent: colour("accent"),
  };
}

export function strengthColour(strength: number, look: Look): string {
  if (strength > STRONG) return look.strong;
  return strength >= WEAK ? look.middling : look.weak;
}

export const strengthWidth = (strength: number): number => 0.8 + 3.4 * strength;
export const strengthWord = (strength: number): string => (strength > STRONG ? "strong" : strength >= WEAK ? "middling" : "weak");
export const nodeSize = (degree: number): number => Math.min(14, 3 + 1.6 * Math.sqrt(degree));

export interface Named {
  x: number;
  y: number;
  size: number;
  label?: string | null;
}

export interface Box {
  left: number;
  right: number;
  y: number;
}

/** Something that a name should not hide: a node, or the mark of an edge. */
export interface Dot {
  x: number;
  y: number;
  size: number;
}

/** What names should not hide, by the lines of the picture, so that a place is looked at in a moment among thousands. */
export class Crowd {
  #lines = new Map<number, Dot[]>();

  add(dot: Dot): void {
    const reach = dot.size + LINE_PX / 2;
    for (let line = lineAt(dot.y - reach); line <= lineAt(dot.y + reach); line++) {
      const known = this.#lines.get(line);
      if (known) known.push(dot);
      else this.#lines.set(line, [dot]);
    }
  }

  /** How many a name at this place would hide. */
  below(box: Box): number {
    return (this.#lines.get(lineAt(box.y)) ?? []).reduce((sum, dot) => sum + Number(hides(box, dot)), 0);
  }
}

const lineAt = (y: number): number => Math.floor(y / LINE_PX);

/** A name beside its node, shortened: where it hides nothing; else, if it must be read, where it hides least. Where
    other names stand already, or it would leave the picture, it is left out. */
export function drawName(context: CanvasRenderingContext2D, node: Named, look: Look, written: Box[], crowd: Crowd, must: boolean): void {
  if (!node.label) return;
  const text = shortened(node.label, context.canvas.width / devicePixelRatio < NARROW_PX ? LONGEST_NARROW : LONGEST);
  const free = placesOf(context, text, node).filter((box) => !written.some((other) => overlap(box, other)));
  let [best, least] = [undefined as Box | undefined, must ? Infinity : 1];
  for (const box of free) {
    const hidden = crowd.below(box);
    if (hidden < least) [best, least] = [box, hidden];
    if (!least) break;
  }
  if (!best) return;
  written.push(best);
  write(context, text, best, look);
}

/** Right of the node, left of it, below, above, and between these: those within the picture. */
function placesOf(context: CanvasRenderingContext2D, text: string, { x, y, size }: Named): Box[] {
  context.font = FONT;
  const wide = context.canvas.width / devicePixelRatio - MARGIN_PX;
  const high = context.canvas.height / devicePixelRatio - MARGIN_PX;
  const width = context.measureText(text).width;
  const [gap, line] = [size + 4, size + LINE_PX / 2 + 2];
  const places = [
    [x + gap, y],
    [x - gap - width, y],
    [x - width / 2, y + line],
    [x - width / 2, y - line],
    [x + gap, y + line],
    [x + gap, y - line],
    [x - gap - width, y + line],
    [x - gap - width, y - line],
  ] as const;
  return places.map(([left, at]) => ({ left, right: left + width, y: at })).filter((box) => box.left >= MARGIN_PX && box.right <= wide && box.y >= LINE_PX && box.y <= high);
}

function hides(box: Box, { x, y, size }: Dot): boolean {
  return Math.abs(box.y - y) < LINE_PX / 2 + size - 2 && box.left < x + size && x - size < box.right;
}

function overlap(one: Box, other: Box): boolean {
  return Math.abs(one.y - other.y) < LINE_PX && one.left < other.right && other.left < one.right;
}

function shortened(label: string, longest = LONGEST): string {
  const letters = [...label];
  return letters.length > longest ? `${letters.slice(0, longest).join("").trimEnd()}…` : label;
}

function write(context: CanvasRenderingContext2D, text: string, { left, y }: Box, look: Look): void {
  context.font = FONT;
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = look.ground;
  context.fillStyle = look.ink;
  const name = `\u2068${text}\u2069`; // in its own direction: what is cut off is cut at its end
  context.strokeText(name, left, y + 4);
  context.fillText(name, left, y + 4);
}

/** What is pointed at or chosen has its name in full, as far as there is room. */
export function drawHovered(context: CanvasRenderingContext2D, node: Named, look: Look): void {
  context.beginPath();
  context.arc(node.x, node.y, node.size + 3, 0, 2 * Math.PI);
  context.lineWidth = 2;
  context.strokeStyle = look.accent;
  context.stroke();
  const name = wholeName(context, node);
  if (name) write(context, name.text, name.box, look);
}

/** The name in full, or shortened where there is less room; null where there is none. */
export function wholeName(context: CanvasRenderingContext2D, node: Named): { text: string; box: Box } | null {
  for (const text of node.label ? [node.label, shortened(node.label)] : []) {
    const [box] = placesOf(context, text, node);
    if (box) return { text, box };
  }
  return null;
}

export interface Marked {
  from: { x: number; y: number };
  to: { x: number; y: number };
  protected: boolean;
  bridge: boolean;
}

/** A bridge is a diamond, what is protected a dot; both, a filled diamond. */
export function drawMark(context: CanvasRenderingContext2D, { from, to, protected: kept, bridge }: Marked, look: Look): void {
  if (Math.hypot(from.x - to.x, from.y - to.y) < ROOM_PX) return;
  const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
  const size = MARK_PX;
  context.beginPath();
  if (bridge) {
    context.moveTo(x, y - size);
    context.lineTo(x + size, y);
    context.lineTo(x, y + size);
    context.lineTo(x - size, y);
    context.closePath();
  } else {
    context.arc(x, y, size * 0.8, 0, 2 * Math.PI);
  }
  context.fillStyle = kept ? look.ink : look.ground;
  context.strokeStyle = look.ink;
  context.lineWidth = 1.2;
  context.fill();
  context.stroke();
}
