// The views: where each is, what it is called, and the letter that follows `g`. A new view is a line here.
import type { Component } from "svelte";
import Home from "./Home.svelte";
import Node from "./Node.svelte";
import Recall from "./Recall.svelte";

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
  { path: "node", title: "Node", inNavigation: false, component: Node },
];
