// Who we are, in which space, and whether the server is there. One object for the whole page.
import type { Schemas } from "./api";

const AGAIN_MS = 1500;
const KEPT = "recollect.space";

class Here {
  visitor = $state.raw<Schemas["Visitor"] | null>(null);
  /** Why one must sign in, where one must. */
  refused = $state<string | null>(null);
  reachable = $state(true);
  /** How many answers are being waited for. */
  pending = $state(0);
  /** Rises when everything shown should be asked for anew. */
  epoch = $state(0);
  #space = $state<string | null>(kept(KEPT));

  /** The space that is asked for; null is the visitor's own. */
  get space(): string | null {
    return this.visitor?.bound ? null : this.#space;
  }

  get spaceName(): string {
    return this.space ?? this.visitor?.space ?? "";
  }

  may(scope: Schemas["Scope"]): boolean {
    const scopes = this.visitor?.scopes ?? [];
    return scopes.includes(scope) || scopes.includes("admin");
  }

  enter(space: string | null): void {
    this.#space = space;
    keep(KEPT, space);
    this.epoch += 1;
  }

  signedIn(visitor: Schemas["Visitor"]): void {
    this.visitor = visitor;
    this.refused = null;
    this.epoch += 1;
  }

  signedOut(why: string): void {
    this.visitor = null;
    this.refused = why;
  }

  answered(): void {
    if (this.reachable) return;
    this.reachable = true;
    this.epoch += 1;
  }

  /** Nobody answers: say so, and knock until somebody does. */
  lost(): void {
    if (!this.reachable) return;
    this.reachable = false;
    const knock = async (): Promise<void> => {
      try {
        if ((await fetch("./health/live")).ok) return this.answered();
      } catch {
        // still away
      }
      setTimeout(() => void knock(), AGAIN_MS);
    };
    setTimeout(() => void knock(), AGAIN_MS);
  }
}

/** What this browser keeps for us, where it keeps anything. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function keep(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // It will be as new next time.
  }
}

export const here = new Here();
