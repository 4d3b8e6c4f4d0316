// The views: where each is, what it is called, and the letter that follows `g`. A new view is a line here.
import type { Component } from "svelte";
import Cases from "./Cases.svelte";
import Graph from "./Graph.svelte";
import Home from "./Home.svelte";
import Memories from "./Memories.svelte";
import Node from "./Node.svelte";
import Pages from "./Pages.svelte";
import Plans from "./Plans.svelte";
import Recall from "./Recall.svelte";
import Review from "./Review.svelte";
import Settings from "./Settings.svelte";

export interface View {
  path: string;
  title: string;
  letter?: string;
  inNavigation: boolean;
  component: Component<{ rest: string; params: URLSearchParams }>;
}

export const VIEWS: View[] = [
  { path: "", title: "Home", letter: "h", inNavigation: true, component: Home },
  { path: "recall", title: "Recall", letter: "r", inNavigation: true, component: Recall },
  { path: "memories", title: "Memories", letter: "m", inNavigation: true, component: Memories },
  { path: "graph", title: "Graph", letter: "g", inNavigation: true, component: Graph },
  { path: "plans", title: "Plans", letter: "p", inNavigation: true, component: Plans },
  { path: "review", title: "Review", letter: "d", inNavigation: true, component: Review },
  { path: "cases", title: "Cases", letter: "c", inNavigation: true, component: Cases },
  { path: "pages", title: "Pages", letter: "w", inNavigation: true, component: Pages },
  { path: "settings", title: "Settings", letter: "s", inNavigation: true, component: Settings },
  { path: "node", title: "Memory", inNavigation: false, component: Node },
];
