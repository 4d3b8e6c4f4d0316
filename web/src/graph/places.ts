// Where nodes stand before the forces move them: each part that hangs together as a tree drawn in rings round its best
// connected node, the parts on a spiral, the largest in the middle. Few lines cross from the start, so that little is
// left to do. A node that comes later begins beside a neighbour that is there.
export interface Ends {
  readonly source: readonly number[];
  readonly target: readonly number[];
}

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const RING = 10;

export function placed(size: number, ends: Ends): Float32Array {
  const places = new Float32Array(2 * size);
  const near = neighbours(size, ends);
  const order = byDegree(near, size);
  const seen = new Uint8Array(size);
  const trees: number[][] = [];
  const parent = new Int32Array(size).fill(-1);
  for (const root of order) if (!seen[root]) trees.push(tree(root, near, seen, parent));
  trees.sort((a, b) => b.length - a.length);
  let covered = 0;
  trees.forEach((nodes, turn) => {
    const radius = RING * Math.sqrt(nodes.length);
    const away = turn === 0 ? 0 : RING * Math.sqrt(covered) * 1.6 + radius;
    drawRings(nodes, parent, places, away * Math.cos(turn * GOLDEN), away * Math.sin(turn * GOLDEN));
    covered += nodes.length;
  });
  return places;
}

interface Near {
  starts: Int32Array;
  nodes: Int32Array;
}

function neighbours(size: number, { source, target }: Ends): Near {
  const starts = new Int32Array(size + 1);
  for (let at = 0; at < source.length; at++) {
    starts[source[at]! + 1]! += 1;
    starts[target[at]! + 1]! += 1;
  }
  for (let node = 0; node < size; node++) starts[node + 1]! += starts[node]!;
  const nodes = new Int32Array(2 * source.length);
  const next = starts.slice(0, size);
  for (let at = 0; at < source.length; at++) {
    nodes[next[source[at]!]!++] = target[at]!;
    nodes[next[target[at]!]!++] = source[at]!;
  }
  return { starts, nodes };
}

function byDegree({ starts }: Near, size: number): number[] {
  const degree = (node: number): number => starts[node + 1]! - starts[node]!;
  return Array.from({ length: size }, (_, node) => node).sort((a, b) => degree(b) - degree(a));
}

/** All that hangs together with a root, nearest first; and whose child each is. */
function tree(root: number, { starts, nodes }: Near, seen: Uint8Array, parent: Int32Array): number[] {
  const found = [root];
  seen[root] = 1;
  for (let at = 0; at < found.length; at++) {
    const node = found[at]!;
    for (let place = starts[node]!; place < starts[node + 1]!; place++) {
      const other = nodes[place]!;
      if (seen[other]) continue;
      seen[other] = 1;
      parent[other] = node;
      found.push(other);
    }
  }
  return found;
}

/** Every node has a slice of the circle as wide as what hangs on it, and stands one ring further out than its parent. */
function drawRings(nodes: number[], parent: Int32Array, places: Float32Array, x: number, y: number): void {
  const weight = new Map<number, number>();
  for (const node of nodes.toReversed()) {
    const own = weight.get(node) ?? 1;
    weight.set(node, own);
    const above = parent[node]!;
    if (above >= 0) weight.set(above, (weight.get(above) ?? 1) + own);
  }
  const from = new Map<number, number>();
  const ring = new Map<number, number>();
  for (const node of nodes) {
    const above = parent[node]!;
    const start = above < 0 ? 0 : from.get(above)!;
    const slice = above < 0 ? 2 * Math.PI : (weight.get(node)! / weight.get(nodes[0]!)!) * 2 * Math.PI;
    if (above >= 0) from.set(above, start + slice);
    from.set(node, start);
    ring.set(node, above < 0 ? 0 : ring.get(above)! + 1);
    const angle = start + slice / 2;
    const away = RING * Math.sqrt(nodes.length) * 0.5 * Math.sqrt(ring.get(node)!);
    places[2 * node] = x + away * Math.cos(angle);
    places[2 * node + 1] = y + away * Math.sin(angle);
  }
}
