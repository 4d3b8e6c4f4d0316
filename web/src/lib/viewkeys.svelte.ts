// The keys of the view that is open, besides those that work everywhere: it says which on opening, and takes them away
// on leaving: `onMount(() => withKeys([{ key: "m", says: "merge", does }]))`. `?` lists them with the others.
export interface ViewKey {
  key: string;
  says: string;
  does: () => void;
}

let current = $state.raw<readonly ViewKey[]>([]);

export function withKeys(keys: readonly ViewKey[]): () => void {
  current = keys;
  return () => {
    if (current === keys) current = [];
  };
}

export function keysHere(): readonly ViewKey[] {
  return current;
}
