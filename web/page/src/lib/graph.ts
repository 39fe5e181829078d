/** QoS graphs: points of (x, utility), straight in between. How a second is judged, how a point is dragged. */

export type Point = readonly [x: number, utility: number];
export type Graph = readonly Point[];

/** The utility at x; before the first point and behind the last one the graph is flat. */
export function utilityAt(graph: Graph, x: number): number | null {
  const first = graph[0];
  const last = graph.at(-1);
  if (!first || !last) return null;
  if (x <= first[0]) return first[1];
  if (x >= last[0]) return last[1];
  for (let i = 1; i < graph.length; i++) {
    const [a, b] = [graph[i - 1], graph[i]];
    if (a && b && x <= b[0]) {
      return b[0] === a[0] ? b[1] : a[1] + ((b[1] - a[1]) * (x - a[0])) / (b[0] - a[0]);
    }
  }
  return last[1];
}

const within = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** The graph after point `at` was dragged: it stays between its neighbours, and utility never rises. */
export function dragged(graph: Graph, at: number, x: number, utility: number): Graph {
  const before = graph[at - 1];
  const after = graph[at + 1];
  const own = graph[at];
  if (!own) return graph;
  const newX = at === 0 ? own[0] : within(x, before ? before[0] + 0.01 : x, after ? after[0] - 0.01 : x);
  const newY = at === 0 ? own[1] : within(utility, after ? after[1] : 0, before ? before[1] : 1);
  return graph.map((point, i) => (i === at ? [round(Math.max(0, newX)), round(newY)] : point));
}

const round = (value: number): number => Math.round(value * 100) / 100;

/** The graph with one more point in the middle of its longest stretch. */
export function withPoint(graph: Graph): Graph {
  let widest = 0;
  for (let i = 1; i < graph.length; i++) {
    if (span(graph, i) > span(graph, widest)) widest = i;
  }
  const [a, b] = [graph[widest - 1], graph[widest]];
  if (!a || !b) return graph;
  const middle: Point = [round((a[0] + b[0]) / 2), round((a[1] + b[1]) / 2)];
  return [...graph.slice(0, widest), middle, ...graph.slice(widest)];
}

const span = (graph: Graph, at: number): number => (graph[at]?.[0] ?? 0) - (graph[at - 1]?.[0] ?? 0);

export interface Judged {
  readonly time: number;
  readonly delay: number;
  readonly before: number;
  readonly after: number;
}

/** The seconds that another graph judges otherwise, by at least a hundredth. */
export function judgedOtherwise(
  old: Graph,
  fresh: Graph,
  delays: readonly { time: number; delay: number | null }[],
): Judged[] {
  const judged: Judged[] = [];
  for (const { time, delay } of delays) {
    if (delay === null) continue;
    const [before, after] = [utilityAt(old, delay), utilityAt(fresh, delay)];
    if (before === null || after === null || Math.abs(before - after) < 0.01) continue;
    judged.push({ time, delay, before, after });
  }
  return judged;
}
