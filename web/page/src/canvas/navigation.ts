/** Where the arrow keys lead: along arrows, and across them to the next card. */

import type { NetworkArrow, NetworkNode } from "../api/network_shapes.ts";

export type Direction = "left" | "right" | "up" | "down";

const TURNED = { left: "up", right: "down", up: "left", down: "right" } as const;
const turned = (node: NetworkNode): NetworkNode => ({ ...node, x: node.y, y: node.x, w: node.h, h: node.w });

const middle = (node: NetworkNode): [number, number] => [node.x + node.w / 2, node.y + node.h / 2];

/** `down`: the picture runs down, so up and down lead along arrows. */
export function neighbour(
  name: string | null,
  direction: Direction,
  nodes: readonly NetworkNode[],
  arrows: readonly NetworkArrow[],
  down = false,
): string | null {
  if (down) return neighbour(name, TURNED[direction], nodes.map(turned), arrows);
  const from = nodes.find((node) => node.name === name);
  if (!from) return [...nodes].sort((a, b) => a.x - b.x || a.y - b.y)[0]?.name ?? null;
  const candidates =
    direction === "left" || direction === "right"
      ? linked(from, direction, nodes, arrows)
      : nodes.filter((node) => beyond(from, node, direction));
  return nearest(from, candidates)?.name ?? from.name;
}

function linked(
  from: NetworkNode,
  direction: "left" | "right",
  nodes: readonly NetworkNode[],
  arrows: readonly NetworkArrow[],
): NetworkNode[] {
  const names = new Set(
    direction === "right"
      ? arrows.filter((arrow) => arrow.tail === from.name).map((arrow) => arrow.head)
      : arrows.filter((arrow) => arrow.head === from.name).map((arrow) => arrow.tail),
  );
  return nodes.filter((node) => names.has(node.name));
}

function beyond(from: NetworkNode, node: NetworkNode, direction: Direction): boolean {
  const [, y0] = middle(from);
  const [, y1] = middle(node);
  return direction === "up" ? y1 < y0 - 1 : y1 > y0 + 1;
}

function nearest(from: NetworkNode, nodes: readonly NetworkNode[]): NetworkNode | undefined {
  const [x0, y0] = middle(from);
  const distance = (node: NetworkNode): number => {
    const [x, y] = middle(node);
    return Math.abs(x - x0) * 2 + Math.abs(y - y0);
  };
  return [...nodes].sort((a, b) => distance(a) - distance(b))[0];
}
