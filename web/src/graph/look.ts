// How the graph looks: the colours of the theme, how a name is written, and the marks of protected edges and bridges.
import type { Schemas } from "../lib/api";

type Kind = Schemas["Kind"];

export interface Look {
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
const FONT = "12px system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
// A mark needs room: on a shorter line it would hide what it marks.
const ROOM_PX = 26;
const MARK_PX = 4.2;

/** The colours of this theme, as the style sheet has them. */
export function lookNow(): Look {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
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

interface Named {
  x: number;
  y: number;
  size: number;
  label?: string | null;
}

export function drawName(context: CanvasRenderingContext2D, node: Named, look: Look): void {
  if (!node.label) return;
  context.font = FONT;
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = look.ground;
  context.fillStyle = look.ink;
  const [x, y] = [node.x + node.size + 4, node.y + 4];
  context.strokeText(node.label, x, y);
  context.fillText(node.label, x, y);
}

export function drawHovered(context: CanvasRenderingContext2D, node: Named, look: Look): void {
  context.beginPath();
  context.arc(node.x, node.y, node.size + 3, 0, 2 * Math.PI);
  context.lineWidth = 2;
  context.strokeStyle = look.accent;
  context.stroke();
  drawName(context, node, look);
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
