/** A small network for tests: a source, a group of two boxes, an output. */

import type { Network, NetworkArrow, NetworkNode } from "../src/api/network_shapes.ts";

export function node(name: string, x: number, more: Partial<NetworkNode> = {}): NetworkNode {
  const facts = {
    inputs: [],
    columns: null,
    keys: [],
    stateful: false,
    qos: null,
    keep: null,
    subnetwork: "s",
  };
  const texts = { argument: "", tag: "", description: "", manual: "", group: "" };
  return { name, kind: "filter", look: "box", x, y: 0, w: 100, h: 50, ...texts, ...facts, ...more };
}

export function arrow(tail: string, head: string, from: number, to: number, index = 0): NetworkArrow {
  const id = `${tail}:${head}:${String(index)}`;
  return {
    id,
    tail,
    head,
    index,
    members: [id],
    path: "",
    points: [
      [from, 25],
      [to, 25],
    ],
  };
}

export const network: Network = {
  name: "n",
  version: 1,
  yaml: null,
  editable: true,
  why_not: null,
  down: false,
  width: 1000,
  height: 100,
  nodes: [
    node("in", 0, { kind: "source", look: "source" }),
    node("a", 200, { group: "g", manual: "throws out the slow" }),
    node("b", 400, { group: "g/inner", columns: [{ name: "speed", type: "INT" }] }),
    node("out", 600, { kind: "output", look: "output" }),
  ],
  groups: [
    { path: "g", name: "g", x: 180, y: -20, w: 340, h: 90, tag: "", description: "", manual: "" },
    { path: "g/inner", name: "inner", x: 380, y: -10, w: 130, h: 70, tag: "", description: "", manual: "" },
  ],
  arrows: [
    arrow("in", "a", 100, 200),
    arrow("a", "b", 300, 400),
    arrow("b", "out", 500, 600),
    arrow("a", "out", 300, 600, 1),
  ],
  linear_road: false,
};
