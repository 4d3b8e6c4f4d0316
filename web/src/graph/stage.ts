// The stage: a part of the graph, drawn by the graphics card. What stood somewhere stands there again when it comes
// back, so that growing, looking back in time and taking topics away do not lose whoever is looking.
import { MultiUndirectedGraph } from "graphology";
import Sigma from "sigma";
import { EdgeLineProgram, EdgeRectangleProgram } from "sigma/rendering";
import type { CameraState } from "sigma/types";
import type { Schemas } from "../lib/api";
import { topicName } from "../lib/format";
import { called } from "../lib/titles";
import { Forces, type Pull } from "./forces";
import { MARK_PX, drawHovered, drawMark, drawName, lookNow, nodeSize, strengthColour, strengthWidth, wholeName, Crowd, type Box, type Dot, type Look, type Named } from "./look";
import { placed, type Ends } from "./places";

export type Sight = Schemas["Sight"];
export const TOPIC = "topic:";

export interface Acts {
  /** A node was chosen, or a topic (`topic:` and its key), or nothing any more. */
  chosen(id: string | null): void;
  /** The picture stands: it was drawn, and the forces have done their first work. */
  ready(): void;
  settled(): void;
}

// Beyond so many edges they are left out while the picture moves, and told apart by their colour alone: thin lines hide
// less of each other, and are drawn in a third of the time.
const MANY_EDGES = 4000;
// Up to so many nodes, each has its name written beside it.
const FEW_NODES = 120;
// Beyond so many, where each of them stands is not asked for every name: there names are few.
const MANY_NODES = 5000;
// A node this large has its name written among many others.
const NAMED_PX = 7;
const BESIDE = 12;
// Up to so many nodes have room at their size.
const SPACIOUS = 1000;
const NARROW_PX = 500;
const SMALLER = 0.65;
const GO_MS = 350;
const STEP_MS = 120;
const CLOSE = 0.35;

interface NodeLook {
  x: number;
  y: number;
  size: number;
  label: string;
  kind: Schemas["Kind"] | "topic";
  /** The place of its largest topic among all of them, by which it is coloured. */
  topic: number | null;
}
interface EdgeLook {
  strength: number | null;
  protected: boolean;
  bridge: boolean;
}

export class Stage {
  #graph = new MultiUndirectedGraph<NodeLook, EdgeLook>();
  #sigma: Sigma<NodeLook, EdgeLook>;
  #forces: Forces;
  #look: Look = lookNow();
  #places = new Map<string, [number, number]>();
  #marked: string[] = [];
  #chosen: string | null = null;
  #lit: Set<string> | null = null;
  #byTopic = false;
  #acts: Acts;
  #isReady = false;
  #isDrawn = false;
  #marks: CanvasRenderingContext2D;
  /** Where names are written in this picture. */
  #written: Box[] = [];
  /** What names should not hide in this picture. */
  #crowd: Crowd | null = null;
  /** For whose name a place is kept in this picture. */
  #keptFor: string | null = null;

  constructor(box: HTMLElement, acts: Acts) {
    this.#acts = acts;
    this.#sigma = new Sigma<NodeLook, EdgeLook>(this.#graph, box, {
      allowInvalidContainer: true,
      zIndex: true,
      minCameraRatio: 0.02,
      maxCameraRatio: 4,
      stagePadding: 40,
      edgeProgramClasses: { wide: EdgeRectangleProgram, thin: EdgeLineProgram },
      defaultDrawNodeLabel: (context, node) => this.#write(context, node),
      defaultDrawNodeHover: (context, node) => drawHovered(context, node, this.#look),
      nodeReducer: (id, node) => this.#nodeLook(id, node),
      edgeReducer: (edge, look) => this.#edgeLook(edge, look),
    });
    this.#sigma.createCanvasContext("marks", { style: { pointerEvents: "none" } });
    this.#marks = this.#sigma.getCanvases()["marks"]!.getContext("2d")!;
    this.#sigma.resize(true);
    this.#sigma.on("clickNode", ({ node }) => acts.chosen(node));
    this.#sigma.on("clickStage", () => acts.chosen(null));
    this.#sigma.on("doubleClickStage", ({ preventSigmaDefault }) => preventSigmaDefault());
    this.#sigma.on("beforeRender", () => ([this.#written.length, this.#keptFor, this.#crowd] = [0, null, null]));
    this.#sigma.on("afterRender", () => this.#drawMarks());
    this.#forces = new Forces((places) => this.#moved(places), () => this.#settled());
  }

  /** Show this part of the graph, and, where wanted, its topics as nodes that contain others. */
  show(sight: Sight, withTopics: boolean): void {
    this.#remember();
    const topics = withTopics ? sight.topics.filter((topic) => topic.members.length) : [];
    const graph = filled(sight, topics);
    const unknown = this.#place(graph, sight, topics);
    this.#graph = graph;
    this.#byTopic = sight.topics.some((topic) => topic.members.length);
    this.#marked = graph.filterEdges((_, edge) => edge.protected || edge.bridge);
    this.#sigma.setSettings({
      hideEdgesOnMove: graph.size > MANY_EDGES,
      labelRenderedSizeThreshold: graph.order <= FEW_NODES ? 0 : NAMED_PX * this.#scale(),
      labelDensity: graph.order <= FEW_NODES ? 1.2 : 0.6,
    });
    // Where everything is new, the first picture waits for the forces: to draw many is what takes long.
    this.#isDrawn = unknown < graph.order;
    if (this.#isDrawn) this.#sigma.setGraph(graph);
    if (unknown) this.#begin();
    else this.#settled();
  }

  choose(id: string | null): void {
    if (this.#chosen === id) return;
    this.#chosen = id;
    this.#again();
  }

  /** Let some nodes stand out; null for none in particular. */
  light(ids: Set<string> | null): void {
    if (this.#lit === ids) return;
    this.#lit = ids;
    this.#again();
  }

  go(id: string): void {
    const node = this.#sigma.getNodeDisplayData(id);
    if (node) this.#turn({ x: node.x, y: node.y, ratio: CLOSE }, GO_MS);
  }

  fit(): void {
    this.#turn({ x: 0.5, y: 0.5, ratio: 1, angle: 0 }, GO_MS);
  }

  zoom(by: number): void {
    const camera = this.#sigma.getCamera();
    this.#turn({ ratio: camera.getBoundedRatio(camera.ratio / by) }, STEP_MS);
  }

  pan(x: number, y: number): void {
    const camera = this.#sigma.getCamera();
    this.#turn({ x: camera.x + x * camera.ratio, y: camera.y + y * camera.ratio }, STEP_MS);
  }

  /** Turn the eye elsewhere: gliding, or at once for who wants no motion. */
  #turn(to: Partial<CameraState>, milliseconds: number): void {
    const camera = this.#sigma.getCamera();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) camera.setState(to);
    else void camera.animate(to, { duration: milliseconds });
  }

  /** The theme has changed. */
  paint(): void {
    const look = lookNow();
    if (JSON.stringify(look) === JSON.stringify(this.#look)) return;
    this.#look = look;
    this.#again();
  }

  close(): void {
    this.#forces.close();
    this.#sigma.kill();
  }

  // -- where nodes stand

  #remember(): void {
    this.#graph.forEachNode((id, { x, y }) => this.#places.set(id, [x, y]));
  }

  /** How many are new here: then the forces find a place for all. */
  #place(graph: MultiUndirectedGraph<NodeLook, EdgeLook>, sight: Sight, topics: Sight["topics"]): number {
    const unknown = graph.filterNodes((id) => !this.#places.has(id));
    graph.forEachNode((id) => {
      const [x, y] = this.#places.get(id) ?? [0, 0];
      graph.mergeNodeAttributes(id, { x, y });
    });
    if (unknown.length === graph.order) placeAll(graph, sight, topics);
    else for (const id of unknown) placeBeside(graph, id, this.#places);
    return unknown.length;
  }

  #begin(): void {
    this.#isReady = false;
    const graph = this.#graph;
    const places = new Float32Array(2 * graph.order);
    const sizes: number[] = [];
    const number = new Map<string, number>();
    graph.forEachNode((id, { x, y, size }) => {
      places.set([x, y], 2 * number.size);
      number.set(id, number.size);
      sizes.push(size);
    });
    const pulls: Pull[] = graph.mapEdges((_, { strength }, source, target) => ({
      source: number.get(source)!,
      target: number.get(target)!,
      weight: strength === null ? 0.5 : 0.3 + strength,
    }));
    this.#forces.begin(places, sizes, pulls);
  }

  async #moved(places: Float32Array): Promise<void> {
    let at = 0;
    this.#graph.updateEachNodeAttributes(
      (_, node) => ({ ...node, x: places[at++]!, y: places[at++]! }),
      { attributes: ["x", "y"] },
    );
    const drawn = new Promise((drawn) => this.#sigma.once("afterRender", () => drawn(null)));
    const isFirst = !this.#isDrawn;
    this.#isDrawn = true;
    if (isFirst) this.#sigma.setGraph(this.#graph);
    await drawn;
    if (!this.#isReady) this.#acts.ready();
    this.#isReady = true;
  }

  #settled(): void {
    if (!this.#isReady) this.#acts.ready();
    this.#isReady = true;
    this.#acts.settled();
  }

  // -- how they look

  /** Everything stands where it stood, and looks otherwise from the next picture on. */
  #again(): void {
    this.#sigma.refresh({ skipIndexation: true, schedule: true });
  }

  #nodeLook(id: string, node: NodeLook): Record<string, unknown> {
    const isOut = this.#lit !== null && !this.#lit.has(id);
    const colour = this.#colour(node);
    return {
      ...node,
      size: node.size * this.#scale(),
      color: isOut ? this.#look.faded : colour,
      label: isOut ? null : node.label,
      highlighted: id === this.#chosen,
      forceLabel: id === this.#chosen,
      zIndex: isOut ? 0 : 1,
      type: "circle",
    };
  }

  /** Many nodes, and those on a phone, are drawn smaller, so that they hide each other less. */
  #scale(): number {
    const isNarrow = this.#sigma?.getDimensions().width < NARROW_PX;
    return (isNarrow ? SMALLER : 1) * Math.sqrt(Math.min(1, SPACIOUS / Math.max(1, this.#graph.order)));
  }

  /** By topic, where there are topics; else by kind. */
  #colour({ kind, topic }: NodeLook): string {
    if (this.#byTopic) return (topic === null ? undefined : this.#look.topics[topic]) ?? this.#look.topic;
    return kind === "topic" ? this.#look.topic : this.#look.kinds[kind];
  }

  #edgeLook(edge: string, { strength }: EdgeLook): Record<string, unknown> {
    const isOut = this.#isOut(edge);
    const type = this.#graph.size > MANY_EDGES ? "thin" : "wide";
    if (strength === null) return { color: this.#look.contains, size: 0.8, zIndex: 0, type };
    const colour = isOut ? this.#look.faded : strengthColour(strength, this.#look);
    return { color: colour, size: strengthWidth(strength), zIndex: isOut ? 0 : 1, type };
  }

  #isOut(edge: string): boolean {
    return this.#lit !== null && !this.#sigma.getGraph().extremities(edge).every((id) => this.#lit!.has(id));
  }

  /** The name of what is chosen is written last, over everything: its place is kept for it. */
  #write(context: CanvasRenderingContext2D, node: Named): void {
    if ("key" in node && node.key === this.#chosen) return;
    if (this.#chosen !== this.#keptFor) this.#keepPlace(context);
    const must = this.#graph.order <= FEW_NODES || this.#graph.order > MANY_NODES || ("kind" in node && node.kind === "topic");
    drawName(context, node, this.#look, this.#written, (this.#crowd ??= this.#crowdNow()), must);
  }

  /** All nodes, and the marks between them. */
  #crowdNow(): Crowd {
    const crowd = new Crowd();
    if (this.#graph.order > MANY_NODES) return crowd;
    const nodes = new Map<string, Dot>();
    for (const id of this.#graph.nodes()) {
      const node = this.#sigma.getNodeDisplayData(id);
      if (node) nodes.set(id, { ...this.#sigma.framedGraphToViewport(node), size: this.#sigma.scaleSize(node.size) });
    }
    const marks = this.#marked.flatMap((edge) => {
      const [from, to] = this.#graph.extremities(edge).map((id) => nodes.get(id));
      return from && to ? [{ x: (from.x + to.x) / 2, y: (from.y + to.y) / 2, size: MARK_PX }] : [];
    });
    for (const dot of [...nodes.values(), ...marks]) crowd.add(dot);
    return crowd;
  }

  #keepPlace(context: CanvasRenderingContext2D): void {
    this.#keptFor = this.#chosen;
    const node = this.#chosen === null ? undefined : this.#sigma.getNodeDisplayData(this.#chosen);
    if (!node) return;
    const name = wholeName(context, { ...this.#sigma.framedGraphToViewport(node), size: this.#sigma.scaleSize(node.size), label: node.label });
    if (name) this.#written.push(name.box);
  }

  #drawMarks(): void {
    const { width, height } = this.#sigma.getDimensions();
    this.#marks.clearRect(0, 0, width, height);
    if (!this.#isDrawn) return;
    const seen = (id: string): { x: number; y: number } => this.#sigma.framedGraphToViewport(this.#sigma.getNodeDisplayData(id)!);
    const inside = ({ x, y }: { x: number; y: number }): boolean => x > 0 && y > 0 && x < width && y < height;
    for (const edge of this.#marked) {
      if (this.#isOut(edge)) continue;
      const [source, target] = this.#graph.extremities(edge);
      const [from, to] = [seen(source), seen(target)];
      if (inside({ x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 })) {
        const { protected: kept, bridge } = this.#graph.getEdgeAttributes(edge);
        drawMark(this.#marks, { from, to, protected: kept, bridge }, this.#look);
      }
    }
  }
}

function filled(sight: Sight, topics: Sight["topics"]): MultiUndirectedGraph<NodeLook, EdgeLook> {
  const graph = new MultiUndirectedGraph<NodeLook, EdgeLook>();
  const { source, target, relation, relations, strength } = sight.edges;
  const [kept, bridges] = [new Set(sight.edges.protected), new Set(sight.edges.bridges)];
  const topicOf = topicsOf(sight);
  sight.nodes.forEach((node, at) => {
    const label = called(node);
    graph.addNode(node.id, { x: 0, y: 0, size: nodeSize(node.degree), label, kind: node.kind, topic: topicOf.get(at) ?? null });
  });
  source.forEach((from, at) => {
    const [a, b] = [sight.nodes[from]!.id, sight.nodes[target[at]!]!.id];
    const look = { strength: strength[at]!, protected: kept.has(at), bridge: bridges.has(at) };
    graph.addEdgeWithKey(`${a} ${b} ${relations[relation[at]!]}`, a, b, look);
  });
  for (const topic of topics) {
    const id = TOPIC + topic.key;
    graph.addNode(id, { x: 0, y: 0, size: nodeSize(4 * topic.size), label: topicName(topic.key), kind: "topic", topic: sight.topics.indexOf(topic) });
    for (const member of topic.members) graph.addEdge(id, sight.nodes[member]!.id, { strength: null, protected: false, bridge: false });
  }
  return graph;
}

/** For each node the first topic that contains it, as they are listed. */
function topicsOf(sight: Sight): Map<number, number> {
  const found = new Map<number, number>();
  sight.topics.forEach((topic, at) => topic.members.forEach((member) => found.has(member) || found.set(member, at)));
  return found;
}

function placeAll(graph: MultiUndirectedGraph<NodeLook, EdgeLook>, sight: Sight, topics: Sight["topics"]): void {
  const first = sight.nodes.length;
  const ends: Ends = {
    source: [...sight.edges.source, ...topics.flatMap((topic, at) => topic.members.map(() => first + at))],
    target: [...sight.edges.target, ...topics.flatMap((topic) => topic.members)],
  };
  const places = placed(first + topics.length, ends);
  let at = 0;
  graph.updateEachNodeAttributes((_, node) => ({ ...node, x: places[at++]!, y: places[at++]! }));
}

function placeBeside(graph: MultiUndirectedGraph<NodeLook, EdgeLook>, id: string, places: Map<string, [number, number]>): void {
  const known = graph.neighbors(id).find((other) => places.has(other));
  const [x, y] = (known && places.get(known)) || [0, 0];
  const angle = Math.random() * 2 * Math.PI;
  graph.mergeNodeAttributes(id, { x: x + BESIDE * Math.cos(angle), y: y + BESIDE * Math.sin(angle) });
}
