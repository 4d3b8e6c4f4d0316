// The forces, in a thread of their own, so that the page stays quick however large the graph is. They work for a while,
// hand over where the nodes are, and go on only when asked to: a slow screen is never flooded.
import iterate from "graphology-layout-forceatlas2/iterate.js";
import { NODE_WIDTH, type Ask, type Told } from "./forces";

let nodes: Float32Array = new Float32Array();
let edges: Float32Array = new Float32Array();
let settings: Ask["settings"] = {};
let task = -1;
let steps = 0;

onmessage = ({ data }: MessageEvent<Ask>): void => {
  if (data.nodes && data.edges) [nodes, edges, settings, task, steps] = [data.nodes, data.edges, data.settings, data.task, 0];
  if (data.task !== task) return;
  const until = performance.now() + data.milliseconds;
  do {
    iterate(settings, nodes, edges);
    steps += 1;
  } while (performance.now() < until && steps < data.most);
  const told: Told = { task, steps, places: places() };
  postMessage(told, { transfer: [told.places.buffer] });
};

function places(): Float32Array<ArrayBuffer> {
  const found = new Float32Array((2 * nodes.length) / NODE_WIDTH);
  for (let at = 0, to = 0; at < nodes.length; at += NODE_WIDTH) {
    found[to++] = nodes[at]!;
    found[to++] = nodes[at + 1]!;
  }
  return found;
}
