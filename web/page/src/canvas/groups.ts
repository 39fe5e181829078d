/**
 * Groups opened and closed in place (A32, A33). A closed group is one card in the middle of the room that its
 * boxes took, so nothing else moves. Arrows inside it are hidden. Those across its border end at the card;
 * several between the same two cards become one.
 */

import type { Network, NetworkArrow, NetworkGroup, NetworkNode } from "../api/network_shapes.ts";
import { curve } from "./routes.ts";

export interface Shown {
  readonly nodes: readonly NetworkNode[];
  /** Open groups, outer ones first. */
  readonly groups: readonly NetworkGroup[];
  readonly arrows: readonly NetworkArrow[];
  /** Where the boxes of each closed group were. */
  readonly rooms: readonly NetworkGroup[];
}

const CARD = { w: 168, h: 64 };
/** Above the first box of a group: its name. */
const NAME_ROOM = 48;

/** The outermost closed group around a group path. */
export function outermost(group: string, closed: ReadonlySet<string>): string | null {
  const parts = group === "" ? [] : group.split("/");
  for (let depth = 1; depth <= parts.length; depth++) {
    const path = parts.slice(0, depth).join("/");
    if (closed.has(path)) return path;
  }
  return null;
}

export function shownWith(network: Network, closed: ReadonlySet<string>): Shown {
  const home = new Map(network.nodes.map((node) => [node.name, outermost(node.group, closed)]));
  const outerClosed = network.groups.filter((group) => outermost(group.path, closed) === group.path);
  const cards = outerClosed.map((group) => groupCard(network, group));
  const nodes = [...network.nodes.filter((node) => home.get(node.name) === null), ...cards];
  return {
    nodes,
    groups: network.groups.filter((group) => outermost(group.path, closed) === null),
    arrows: joinedArrows(network, home, new Map(nodes.map((node) => [node.name, node]))),
    rooms: outerClosed,
  };
}

/** Cards that several arrows enter: there is room for one line of numbers each. */
export function crowdedHeads(arrows: readonly NetworkArrow[]): Set<string> {
  const once = new Set<string>();
  return new Set(arrows.map((arrow) => arrow.head).filter((head) => once.has(head) || !once.add(head)));
}

/** How far up the numbers of an arrow go, so that they do not stand on the names of groups that it enters. */
export function aboveGroups(arrow: NetworkArrow, groups: readonly NetworkGroup[]): number {
  const [first, last] = [arrow.points[0], arrow.points.at(-1)];
  if (!first || !last) return 0;
  const holds = (group: NetworkGroup, [x, y]: readonly [number, number]): boolean =>
    group.x <= x && x <= group.x + group.w && group.y <= y && y <= group.y + group.h;
  const entered = groups.filter((group) => holds(group, last) && !holds(group, first));
  // Deep inside a group there is room right above the box.
  const near = entered.map((group) => last[1] - group.y).filter((distance) => distance < NAME_ROOM);
  return Math.max(0, ...near);
}

export const cardName = (path: string): string => `${path}/`;

export function inside(network: Network, path: string): NetworkNode[] {
  return network.nodes.filter((node) => node.group === path || node.group.startsWith(`${path}/`));
}

function groupCard(network: Network, group: NetworkGroup): NetworkNode {
  const boxes = inside(network, group.path).length;
  const w = Math.min(group.w, Math.max(CARD.w, 8.2 * group.name.length + 48));
  return {
    name: cardName(group.path),
    kind: "group",
    look: "group",
    argument: boxes === 1 ? "1 box" : `${String(boxes)} boxes`,
    group: group.path.split("/").slice(0, -1).join("/"),
    x: group.x + (group.w - w) / 2,
    y: group.y + (group.h - CARD.h) / 2,
    w,
    h: CARD.h,
    path: group.path,
    subnetwork: null,
    inputs: [],
    columns: null,
    keys: [],
    stateful: false,
    tag: group.tag,
    description: group.description,
    manual: group.manual,
    qos: null,
    keep: null,
  };
}

function joinedArrows(
  network: Network,
  home: ReadonlyMap<string, string | null>,
  cards: ReadonlyMap<string, NetworkNode>,
): NetworkArrow[] {
  const joined = new Map<string, NetworkArrow>();
  for (const arrow of network.arrows) {
    const [from, to] = [home.get(arrow.tail) ?? null, home.get(arrow.head) ?? null];
    if (from === null && to === null) {
      joined.set(arrow.id, arrow);
      continue;
    }
    if (from === to) continue;
    const tail = from === null ? arrow.tail : cardName(from);
    const head = to === null ? arrow.head : cardName(to);
    const id = `${tail}:${head}:0`;
    const members = [...(joined.get(id)?.members ?? []), ...arrow.members];
    const ends = [cards.get(tail), cards.get(head)] as const;
    joined.set(id, { ...ended(arrow, ends, network.down), id, tail, head, index: 0, members });
  }
  return [...joined.values()];
}

/** The arrow with its ends at the cards. It keeps the way in between where that is still in front of it. */
function ended(
  arrow: NetworkArrow,
  [from, to]: readonly [NetworkNode | undefined, NetworkNode | undefined],
  down: boolean,
): NetworkArrow {
  const first = from ? leaving(from, down) : arrow.points[0];
  const last = to ? entering(to, down) : arrow.points.at(-1);
  if (!first || !last) return arrow;
  const along = down ? 1 : 0;
  const between = arrow.points
    .slice(1, -1)
    .filter((at) => at[along] > first[along] && at[along] < last[along]);
  const points = [first, ...between, last];
  return { ...arrow, points, path: curve(points, down) };
}

type Point = readonly [number, number];

const leaving = (card: NetworkNode, down: boolean): Point =>
  down ? [card.x + card.w / 2, card.y + card.h] : [card.x + card.w, card.y + card.h / 2];

const entering = (card: NetworkNode, down: boolean): Point =>
  down ? [card.x + card.w / 2, card.y] : [card.x, card.y + card.h / 2];

/** The paths of the groups that are in no other group. */
export function topGroups(groups: readonly NetworkGroup[]): Set<string> {
  return new Set(groups.map((group) => group.path).filter((path) => !path.includes("/")));
}
