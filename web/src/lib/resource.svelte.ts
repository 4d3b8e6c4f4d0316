// Something a view shows that comes from the API: asked for when the view opens, and again when what it depends on
// changes (whatever `load` reads before its first await), when the space does, when the server comes back, on reload().
import { untrack } from "svelte";
import { Problem, UNREACHABLE } from "./api";
import { here } from "./here.svelte";
import { say } from "./said.svelte";

export interface Resource<T> {
  readonly data: T | undefined;
  readonly error: Problem | undefined;
  readonly loading: boolean;
  reload(): void;
}

export function resource<T>(load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  let data = $state.raw<T>();
  let error = $state.raw<Problem>();
  let loading = $state(true);
  let wish = $state(0);

  $effect(() => {
    void wish;
    void here.epoch;
    const stop = new AbortController();
    untrack(() => (loading = true));
    load(stop.signal).then(
      (found) => {
        if (stop.signal.aborted) return;
        [data, error, loading] = [found, undefined, false];
      },
      (reason: unknown) => {
        if (stop.signal.aborted) return;
        [error, loading] = [asProblem(reason), false];
      },
    );
    return () => stop.abort();
  });

  return {
    get data() {
      return data;
    },
    get error() {
      return error;
    },
    get loading() {
      return loading;
    },
    reload() {
      wish += 1;
    },
  };
}

/** Do something that changes the memory; a refusal is said as the server puts it, and undefined comes back. */
export async function act<T>(does: () => Promise<T>): Promise<T | undefined> {
  try {
    return await does();
  } catch (reason) {
    const problem = asProblem(reason);
    say(problem.code === UNREACHABLE ? "The server does not answer: try again when it is back." : problem.message, { bad: true });
    return undefined;
  }
}

export function asProblem(reason: unknown): Problem {
  if (reason instanceof Problem) return reason;
  throw reason;
}
