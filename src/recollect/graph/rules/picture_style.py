"""How a picture looks, and the few lines of script that let a page of pictures be moved, enlarged and asked.

Plain rules, no variables: programs other than browsers read an SVG too. Whatever a colour says, a width, a shape, a
dash pattern or a sign says as well.
"""

from collections.abc import Callable, Mapping

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', 'DejaVu Sans', Arial, sans-serif"

LIGHT = {
    "ground": "#ffffff",
    "panel": "#f6f7f9",
    "rule": "#d5d9df",
    "text": "#1d232b",
    "quiet": "#5c6672",
    "strong": "#1a7f37",
    "middle": "#bf8700",
    "weak": "#cf2f36",
    "memory": "#3b73c4",
    "concept": "#7a5bc0",
    "case": "#0f7f8c",
    "page": "#8a6d5a",
    "other": "#66707c",
    "accent": "#1d232b",
}
DARK = {
    "ground": "#14171c",
    "panel": "#1c2027",
    "rule": "#363d47",
    "text": "#e8ebef",
    "quiet": "#9aa4b0",
    "strong": "#46b964",
    "middle": "#dca52a",
    "weak": "#ff7a72",
    "memory": "#6ea3ee",
    "concept": "#a98df0",
    "case": "#3fb6c2",
    "page": "#c0a08a",
    "other": "#96a0ac",
    "accent": "#f4f6f8",
}
STRENGTHS = ("strong", "middle", "weak")
KINDS = ("memory", "concept", "case", "page", "other")

SHAPE = f"""
.recollect-picture {{ font-family: {FONT}; }}
.recollect-picture text {{ font-size: 12px; stroke-width: 3.5px; stroke-linejoin: round; paint-order: stroke; }}
.recollect-picture .heading {{ font-size: 15px; font-weight: 600; }}
.recollect-picture .note, .recollect-picture .count {{ font-size: 11.5px; }}
.recollect-picture .relation {{ font-size: 10.5px; }}
.recollect-picture .badge {{ font-size: 12px; font-weight: 700; stroke: none; }}
.recollect-picture .focus .name {{ font-weight: 700; }}
.recollect-picture .spare {{ visibility: hidden; }}
.recollect-picture .cover {{ opacity: 0.9; }}
.recollect-picture.near .name {{ font-size: var(--name-size); }}
.recollect-picture .dot:hover .spare, .recollect-picture.near .spare {{ visibility: visible; }}
.recollect-picture .stroke {{ fill: none; stroke-linecap: round; }}
.recollect-picture .strong .stroke {{ stroke-width: 2.8px; }}
.recollect-picture .middle .stroke {{ stroke-width: 1.8px; }}
.recollect-picture .weak .stroke {{ stroke-width: 1.5px; stroke-dasharray: 0.1 4; }}
.recollect-picture .added .stroke {{ stroke-width: 4.4px; }}
.recollect-picture .added.weak .stroke {{ stroke-dasharray: 0.1 7; }}
.recollect-picture .removed .stroke {{ stroke-width: 1.5px; stroke-dasharray: 7 5; stroke-linecap: butt; }}
.recollect-picture .removed .stroke, .recollect-picture .removed .head {{ opacity: 0.55; }}
.recollect-picture .hit {{ fill: none; stroke: transparent; stroke-width: 14px; pointer-events: stroke; }}
.recollect-picture .shape {{ stroke-width: 1.5px; }}
.recollect-picture .dot.removed .shape {{ fill-opacity: 0.12; stroke-width: 1.5px; stroke-dasharray: 4 3; }}
.recollect-picture .dot.removed .name {{ font-style: italic; opacity: 0.7; }}
.recollect-picture .fine .stroke {{ opacity: 0.75; }}
.recollect-picture .fine .strong .stroke {{ stroke-width: 1.9px; }}
.recollect-picture .fine .middle .stroke {{ stroke-width: 1.3px; }}
.recollect-picture .fine .weak .stroke {{ stroke-width: 1.2px; }}
.recollect-picture .dot.added .shape, .recollect-picture .dot.changed .shape {{ stroke-width: 2px; }}
.recollect-picture .ring {{ fill: none; stroke-width: 2px; }}
.recollect-picture .lines, .recollect-picture .dots {{ cursor: default; }}
.recollect-picture.asked .dot, .recollect-picture.asked .line {{ opacity: 0.18; }}
.recollect-picture.asked .lit {{ opacity: 1; }}
"""

PAGE = f"""
:root {{ color-scheme: light dark; }}
body {{ margin: 0 auto; padding: 28px 24px 48px; max-width: 1160px; font: 15px/1.5 {FONT}; }}
h1 {{ font-size: 24px; line-height: 1.25; margin: 0 0 8px; overflow-wrap: anywhere; }}
h2 {{ font-size: 16px; margin: 0; overflow-wrap: anywhere; }}
p {{ margin: 0 0 10px; max-width: 70ch; overflow-wrap: anywhere; white-space: pre-line; }}
figure {{ margin: 22px 0 0; border: 1px solid; border-radius: 10px; overflow: hidden; }}
figcaption {{ display: flex; align-items: center; gap: 6px; padding: 9px 14px; border-bottom: 1px solid; }}
figcaption h2 {{ flex: 1; }}
button {{ font: inherit; line-height: 1; min-width: 30px; height: 28px; border: 1px solid; border-radius: 6px;
  cursor: pointer; background: none; color: inherit; }}
figure > svg {{ display: block; margin: 0 auto; width: 100%; height: auto; max-height: 86vh; touch-action: pan-y; }}
figure.live > svg {{ cursor: grab; }}
.legend {{ display: flex; flex-wrap: wrap; gap: 6px 22px; margin: 18px 0 0; padding: 0; list-style: none;
  font-size: 13px; }}
.legend li {{ display: flex; align-items: center; gap: 7px; }}
.hint {{ font-size: 13px; margin: 14px 0 0; }}
#told {{ position: fixed; z-index: 9; max-width: 340px; padding: 8px 11px; border: 1px solid; border-radius: 8px;
  font-size: 13px; line-height: 1.4; white-space: pre-line; overflow-wrap: anywhere; pointer-events: none;
  box-shadow: 0 4px 16px rgb(0 0 0 / 18%); }}
#told[hidden] {{ display: none; }}
@media print {{ button, .hint {{ display: none; }} figure {{ break-inside: avoid; }} }}
"""

# The viewBox is what moves: the drawing itself stays as it was written.
SCRIPT = """
"use strict";
const told = document.getElementById("told");
const ZOOM = 1.3, NEAR = 1.6;

function tell(text, event) {
  told.textContent = text;
  told.hidden = false;
  const box = told.getBoundingClientRect();
  told.style.left = Math.max(8, Math.min(event.clientX + 16, innerWidth - box.width - 8)) + "px";
  told.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12
    : event.clientY + 18) + "px";
}

function ask(svg) {
  const texts = new Map();
  for (const title of svg.querySelectorAll("g > title")) {
    texts.set(title.parentNode, title.textContent);
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  const light = (thing) => {
    const panel = thing.closest(".sheet"), number = thing.dataset.n;
    const lines = [...panel.querySelectorAll(".line")].filter((line) => number === undefined
      ? line.dataset.l === thing.dataset.l : line.dataset.s === number || line.dataset.t === number);
    const ends = new Set([number, ...lines.flatMap((line) => [line.dataset.s, line.dataset.t])]);
    lines.forEach((line) => line.classList.add("lit"));
    panel.querySelectorAll(".dot").forEach((dot) => dot.classList.toggle("lit", ends.has(dot.dataset.n)));
    svg.classList.add("asked");
  };
  const rest = () => {
    told.hidden = true;
    svg.classList.remove("asked");
    svg.querySelectorAll(".lit").forEach((thing) => thing.classList.remove("lit"));
  };
  svg.addEventListener("pointerover", (event) => {
    const thing = event.target.closest(".dot, .line");
    rest();
    if (thing && texts.has(thing)) { light(thing); tell(texts.get(thing), event); }
  });
  svg.addEventListener("pointermove", (event) => { if (!told.hidden) tell(told.textContent, event); });
  svg.addEventListener("pointerleave", rest);
}

function move(figure, svg) {
  const whole = svg.viewBox.baseVal, home = [whole.x, whole.y, whole.width, whole.height];
  let view = [...home], held = null;
  const show = (next) => {
    view = next;
    svg.setAttribute("viewBox", view.join(" "));
    const scale = home[2] / view[2];
    svg.classList.toggle("near", scale >= NEAR);
    svg.style.setProperty("--name-size", 12 / Math.sqrt(scale) + "px");
  };
  const point = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [at.x, at.y];
  };
  const zoom = (factor, [x, y]) => {
    const width = Math.min(home[2], Math.max(home[2] / 12, view[2] / factor)), by = width / view[2];
    show(width === home[2] ? [...home] : [x - (x - view[0]) * by, y - (y - view[1]) * by, width, view[3] * by]);
  };
  const middle = () => [view[0] + view[2] / 2, view[1] + view[3] / 2];
  const button = (sign, name, act) => {
    const made = document.createElement("button");
    made.type = "button"; made.textContent = sign; made.title = name; made.setAttribute("aria-label", name);
    made.addEventListener("click", act);
    figure.querySelector("figcaption").append(made);
  };
  button("+", "Zoom in", () => zoom(ZOOM, middle()));
  button("\\u2212", "Zoom out", () => zoom(1 / ZOOM, middle()));
  button("Reset", "Show the whole picture", () => show([...home]));
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.004), point(event));
  }, { passive: false });
  svg.addEventListener("dblclick", (event) => zoom(ZOOM * ZOOM, point(event)));
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = point(event);
    svg.setPointerCapture(event.pointerId);
    svg.style.cursor = "grabbing";
  });
  svg.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [x, y] = point(event);
    show([view[0] + held[0] - x, view[1] + held[1] - y, view[2], view[3]]);
  });
  for (const end of ["pointerup", "pointercancel"])
    svg.addEventListener(end, () => { held = null; svg.style.cursor = ""; });
  figure.classList.add("live");
}

for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector(":scope > svg");
  if (svg) { ask(svg); move(figure, svg); }
}
for (const hint of document.querySelectorAll(".hint")) hint.hidden = false;
"""


def picture_style() -> str:
    """The style sheet inside every SVG."""
    return SHAPE + _in_both_lights(_picture_colours)


def page_style() -> str:
    """The style sheet of a page around its pictures."""
    return PAGE + _in_both_lights(_page_colours)


def _in_both_lights(colours: Callable[[Mapping[str, str]], str]) -> str:
    return f"{colours(LIGHT)}@media (prefers-color-scheme: dark) {{\n{colours(DARK)}}}\n"


def _picture_colours(of: Mapping[str, str]) -> str:
    rules = [
        f".ground, .recollect-picture .cover {{ fill: {of['ground']}; }}",
        f"text {{ fill: {of['text']}; stroke: {of['ground']}; }}",
        f".note, .recollect-picture .count, .recollect-picture .relation {{ fill: {of['quiet']}; }}",
        f".rule {{ stroke: {of['rule']}; }}",
        f".ring {{ stroke: {of['accent']}; }}",
        f".plate {{ fill: {of['accent']}; }}",
        f".badge {{ fill: {of['ground']}; }}",
        f".shape {{ stroke: {of['ground']}; }}",
        f".dot.added .shape, .recollect-picture .dot.changed .shape {{ stroke: {of['accent']}; }}",
    ]
    for strength in STRENGTHS:
        rules.append(f".{strength} .stroke {{ stroke: {of[strength]}; }}")
        rules.append(f".{strength} .head {{ fill: {of[strength]}; }}")
    for kind in KINDS:
        rules.append(f".{kind} .shape {{ fill: {of[kind]}; }}")
        rules.append(f".{kind}.removed .shape {{ stroke: {of[kind]}; }}")
    return "".join(f".recollect-picture {rule}\n" for rule in rules)


def _page_colours(of: Mapping[str, str]) -> str:
    return f"""body {{ background: {of["panel"]}; color: {of["text"]}; }}
figure, #told {{ background: {of["ground"]}; border-color: {of["rule"]}; }}
figcaption, button {{ border-color: {of["rule"]}; }}
.hint {{ color: {of["quiet"]}; }}
"""
