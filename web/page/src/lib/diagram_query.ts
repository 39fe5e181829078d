/**
 * Teleport (A35): a query on the diagram. Words are looked for in names; `kind:filter`, `column:speed`,
 * `note:toll`, `tag:hot`, `group:roads`, `utility<0.5`, `rate>1000`, `waiting>0`, `dropped>0` ask for one
 * attribute. All parts must hold.
 */

import type { NetworkNode } from "../api/network_shapes.ts";

/** Figures of a node now; null is unknown, and an unknown figure answers no comparison. */
export interface Figures {
  readonly utility: number | null;
  readonly rate: number | null;
  readonly waiting: number | null;
  readonly dropped: number | null;
}

export type FiguresOf = (node: NetworkNode) => Figures;
type Test = (node: NetworkNode, figures: Figures) => boolean;

const COMPARISON = /^(utility|rate|waiting|dropped)(<=|>=|<|>|=)(-?[\d.]+)$/;
const has = (text: string, part: string): boolean => text.toLowerCase().includes(part);

const ATTRIBUTES: Readonly<Record<string, (node: NetworkNode, part: string) => boolean>> = {
  name: (node, part) => has(node.name, part),
  kind: (node, part) => has(node.kind, part) || has(node.look, part),
  column: (node, part) => (node.columns ?? []).some((column) => has(column.name, part)),
  note: (node, part) => has(`${node.manual} ${node.description}`, part),
  tag: (node, part) => has(node.tag, part),
  arg: (node, part) => has(node.argument, part),
  group: (node, part) => has(node.group, part),
};

export const HELP = `words find names; ${Object.keys(ATTRIBUTES)
  .filter((name) => name !== "name")
  .map((name) => `${name}:`)
  .join(" ")} utility<0.5 rate>1000 waiting>0 dropped>0`;

/** The nodes that a query finds, those whose name begins with it first. */
export function findNodes(query: string, nodes: readonly NetworkNode[], figuresOf: FiguresOf): NetworkNode[] {
  const tests = query
    .trim()
    .toLowerCase()
    .split(/\s+/)
    .filter((part) => part !== "")
    .map(testOf);
  if (tests.length === 0) return [];
  const found = nodes.filter((node) => {
    const figures = figuresOf(node);
    return tests.every((test) => test(node, figures));
  });
  const begins = (node: NetworkNode): number =>
    node.name.toLowerCase().startsWith(query.toLowerCase()) ? 0 : 1;
  return found.sort((a, b) => begins(a) - begins(b));
}

function testOf(part: string): Test {
  const comparison = COMPARISON.exec(part);
  if (comparison) return compared(comparison);
  const colon = part.indexOf(":");
  const attribute = colon > 0 ? ATTRIBUTES[part.slice(0, colon)] : undefined;
  if (attribute) return (node) => attribute(node, part.slice(colon + 1));
  return (node) => has(node.name, part) || has(node.tag, part);
}

function compared([, name, sign, number]: RegExpExecArray): Test {
  const limit = Number(number);
  return (_, figures) => {
    const value = figures[name as keyof Figures];
    if (value === null) return false;
    if (sign === "<") return value < limit;
    if (sign === ">") return value > limit;
    if (sign === "<=") return value <= limit;
    return sign === ">=" ? value >= limit : value === limit;
  };
}
