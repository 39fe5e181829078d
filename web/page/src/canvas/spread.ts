/**
 * The picture of `penstock draw`, with room for figures: no card is wider than the page needs, and between two
 * layers there is as much room as an arrow's numbers take. Only x moves, and everything keeps its order. A
 * picture that runs down has this room already.
 */

import type { Network, NetworkArrow, NetworkNode } from "../api/network_shapes.ts";
import { curve } from "./routes.ts";

export const WIDEST = 176;
export const GAP = 116;

type Interval = readonly [from: number, to: number];

export function spread(network: Network): Network {
  if (network.down) return network;
  const narrow = network.nodes.map(narrowed);
  const place = placed(layers(narrow.map((node) => [node.x, node.x + node.w])));
  const nodes = narrow.map((node) => ({ ...node, x: place(node.x) }));
  const cards = new Map(nodes.map((node) => [node.name, node]));
  return {
    ...network,
    width: place(network.width),
    nodes,
    groups: network.groups.map((group) => {
      const x = place(group.x);
      return { ...group, x, w: place(group.x + group.w) - x };
    }),
    arrows: network.arrows.map((arrow) => moved(arrow, cards, place)),
  };
}

function narrowed(node: NetworkNode): NetworkNode {
  const w = Math.min(node.w, WIDEST);
  return { ...node, x: node.x + (node.w - w) / 2, w };
}

/** The parts of the x axis that cards cover, from left to right. */
export function layers(cards: readonly Interval[]): Interval[] {
  const found: [number, number][] = [];
  for (const [from, to] of [...cards].sort((a, b) => a[0] - b[0])) {
    const last = found.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  }
  return found;
}

/** Where an x goes: layers move as they are, what lies between two of them becomes GAP wide. */
export function placed(found: readonly Interval[]): (x: number) => number {
  const starts: number[] = [];
  let at = found[0]?.[0] ?? 0;
  for (const [from, to] of found) {
    starts.push(at);
    at += to - from + GAP;
  }
  return (x) => {
    const layer = found.findLastIndex(([from]) => x >= from);
    const [own, next] = [found[layer], found[layer + 1]];
    if (!own) return x; // left of all cards
    const start = starts[layer] ?? 0;
    if (x <= own[1] || !next) return start + (x - own[0]);
    return start + (own[1] - own[0]) + ((x - own[1]) / (next[0] - own[1])) * GAP;
  };
}

function moved(
  arrow: NetworkArrow,
  cards: ReadonlyMap<string, NetworkNode>,
  place: (x: number) => number,
): NetworkArrow {
  const [tail, head] = [cards.get(arrow.tail), cards.get(arrow.head)];
  const last = arrow.points.length - 1;
  const points = arrow.points.map(([x, y], at): readonly [number, number] => {
    if (at === 0 && tail) return [tail.x + tail.w, y];
    return at === last && head ? [head.x, y] : [place(x), y];
  });
  return { ...arrow, points, path: curve(points) };
}
