// The keys that work everywhere, unless somebody is writing; a view's own come first. `[data-row]` is what j and k walk through.
import { keysHere } from "./viewkeys.svelte";

const PATIENCE_MS = 1200;

export interface Acts {
  search(): void;
  remember(): void;
  keys(): void;
  theme(): void;
  anything(): void;
  go(letter: string): void;
}

export function keyboard(acts: Acts): () => void {
  let wentAt = 0;

  function pressed(event: KeyboardEvent): void {
    // Also while somebody writes, as everywhere else.
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return acts.anything();
    }
    if (!isForUs(event)) return;
    const going = Date.now() - wentAt < PATIENCE_MS;
    wentAt = 0;
    const own = keysHere().find((one) => one.key === event.key);
    if (going) acts.go(event.key);
    else if (own) own.does();
    else if (event.key === "g") wentAt = Date.now();
    else if (event.key === "/") acts.search();
    else if (event.key === "n") acts.remember();
    else if (event.key === "?") acts.keys();
    else if (event.key === "t") acts.theme();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else return;
    event.preventDefault();
  }

  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

/** Whether a key is a command: nobody is writing, and no question stands open. */
export function isForUs(event: KeyboardEvent): boolean {
  const isChord = event.ctrlKey || event.metaKey || event.altKey;
  return !(isChord || isWriting(event.target) || document.querySelector("dialog[open]"));
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
