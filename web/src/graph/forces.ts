// Forces that draw together what is linked and keep the rest apart. `Forces` talks with the thread that computes them:
// it hands over a graph, is told where the nodes are after a while, shows that, and asks on until they have settled.
import type { ForceAtlas2Settings } from "graphology-layout-forceatlas2";

// How the thread's matrices are laid out: ten numbers a node (x and y first, then its mass and size), three an edge.
export const NODE_WIDTH = 10;
export const EDGE_WIDTH = 3;
const [MASS, CONVERGENCE, SIZE] = [6, 7, 8];

// So long until it is shown for the first time, and between two pictures.
const FIRST_MS = 250;
const NEXT_MS = 120;
const MOST_STEPS = 400;
const MOST_MS = 12_000;
// Up to so many, every node is compared with every other; beyond, far ones are taken together.
const FEW = 800;

export interface Ask {
  task: number;
  milliseconds: number;
  most: number;
  settings: ForceAtlas2Settings;
  nodes?: Float32Array;
  edges?: Float32Array;
}

export interface Told {
  task: number;
  steps: number;
  places: Float32Array<ArrayBuffer>;
}

export interface Pull {
  source: number;
  target: number;
  weight: number;
}

export class Forces {
  #thread = new Worker(new URL("./forces.worker.ts", import.meta.url), { type: "module" });
  #task = 0;
  #begunAt = 0;

  /** `moved` shows where the nodes are and says when that is done; `settled` is told once they rest. */
  constructor(moved: (places: Float32Array) => Promise<void>, settled: () => void) {
    this.#thread.onmessage = async ({ data }: MessageEvent<Told>) => {
      if (data.task !== this.#task) return;
      await moved(data.places);
      if (data.task !== this.#task) return;
      const enough = data.steps >= MOST_STEPS || performance.now() - this.#begunAt > MOST_MS;
      if (enough) settled();
      else this.#ask({ task: this.#task, milliseconds: NEXT_MS, most: MOST_STEPS, settings: {} });
    };
  }

  begin(places: Float32Array, sizes: number[], pulls: Pull[]): void {
    this.#task += 1;
    this.#begunAt = performance.now();
    const [nodes, edges] = [nodeMatrix(places, sizes, pulls), edgeMatrix(pulls)];
    const first = { task: this.#task, milliseconds: FIRST_MS, most: MOST_STEPS, settings: settingsFor(sizes.length) };
    this.#ask({ ...first, nodes, edges }, [nodes.buffer, edges.buffer]);
  }

  /** Whatever is still computed is not shown any more. */
  stop(): void {
    this.#task += 1;
  }

  close(): void {
    this.#thread.terminate();
  }

  #ask(what: Ask, transfer: Transferable[] = []): void {
    this.#thread.postMessage(what, { transfer });
  }
}

function settingsFor(size: number): ForceAtlas2Settings {
  return {
    strongGravityMode: true,
    gravity: 0.05,
    scalingRatio: 10,
    slowDown: 1 + Math.log(Math.max(1, size)),
    edgeWeightInfluence: 1,
    barnesHutOptimize: size > FEW,
    barnesHutTheta: 0.8,
  };
}

function nodeMatrix(places: Float32Array, sizes: number[], pulls: Pull[]): Float32Array<ArrayBuffer> {
  const matrix = new Float32Array(sizes.length * NODE_WIDTH);
  sizes.forEach((size, node) => {
    const at = node * NODE_WIDTH;
    matrix[at] = places[2 * node]!;
    matrix[at + 1] = places[2 * node + 1]!;
    matrix[at + MASS] = matrix[at + CONVERGENCE] = 1;
    matrix[at + SIZE] = size;
  });
  for (const { source, target, weight } of pulls) {
    matrix[source * NODE_WIDTH + MASS]! += weight;
    matrix[target * NODE_WIDTH + MASS]! += weight;
  }
  return matrix;
}

function edgeMatrix(pulls: Pull[]): Float32Array<ArrayBuffer> {
  const matrix = new Float32Array(pulls.length * EDGE_WIDTH);
  pulls.forEach(({ source, target, weight }, edge) => {
    matrix.set([source * NODE_WIDTH, target * NODE_WIDTH, weight], edge * EDGE_WIDTH);
  });
  return matrix;
}
