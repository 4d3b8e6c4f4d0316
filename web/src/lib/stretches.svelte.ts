// A long list that comes in stretches: the first when the view opens (and again as a resource does), the next on wish.
import { act, resource } from "./resource.svelte";
import type { Problem } from "./api";

interface Stretch<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}

export interface Stretches<T> {
  readonly items: readonly T[] | undefined;
  readonly error: Problem | undefined;
  readonly hasMore: boolean;
  more(): Promise<void>;
  reload(): void;
}

export function stretches<T>(load: (cursor: string | undefined, signal?: AbortSignal) => Promise<Stretch<T>>): Stretches<T> {
  const first = resource((signal) => load(undefined, signal));
  let following = $state.raw<{ after: Stretch<T>; stretch: Stretch<T> }[]>([]);

  let underWay: string | undefined; // asked for twice, a stretch would be there twice

  // What followed an older first stretch follows no more.
  const whole = $derived(first.data ? [first.data, ...following.filter((one) => one.after === first.data).map((one) => one.stretch)] : []);
  const items = $derived(first.data && whole.flatMap((one) => one.items));
  const cursor = $derived(whole.at(-1)?.next_cursor ?? undefined);

  return {
    get items() {
      return items;
    },
    get error() {
      return first.error;
    },
    get hasMore() {
      return cursor !== undefined;
    },
    async more() {
      const after = first.data;
      if (!after || !cursor || underWay === cursor) return;
      const asked = (underWay = cursor);
      const stretch = await act(() => load(asked));
      underWay = undefined;
      if (stretch) following = [...following, { after, stretch }];
    },
    reload: first.reload,
  };
}
