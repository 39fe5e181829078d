import { describe, expect, it } from "vitest";
import { dragged, judgedOtherwise, utilityAt, withPoint, type Graph } from "../src/lib/graph.ts";

const graph: Graph = [
  [0, 1],
  [5, 1],
  [30, 0],
];

describe("a QoS graph", () => {
  it("is straight between its points and flat outside", () => {
    expect([-1, 5, 17.5, 30, 99].map((x) => utilityAt(graph, x))).toEqual([1, 1, 0.5, 0, 0]);
    expect(utilityAt([], 1)).toBeNull();
  });
  it("keeps its order and never rises while it is dragged", () => {
    expect(dragged(graph, 1, 99, 1)[1]).toEqual([29.99, 1]);
    expect(dragged(graph, 1, -9, 0.5)[1]).toEqual([0.01, 0.5]);
    expect(dragged(graph, 2, 10, 3)[2]).toEqual([10, 1]);
    expect(dragged(graph, 0, 4, 0)[0]).toEqual([0, 1]);
  });
  it("gets a new point where there is most room", () => {
    expect(withPoint(graph)).toEqual([
      [0, 1],
      [5, 1],
      [17.5, 0.5],
      [30, 0],
    ]);
  });
  it("tells which seconds another graph judges otherwise", () => {
    const delays = [
      { time: 1, delay: 2 },
      { time: 2, delay: 10 },
      { time: 3, delay: null },
    ];
    expect(
      judgedOtherwise(
        graph,
        [
          [0, 1],
          [1, 1],
          [30, 0],
        ],
        delays,
      ).map((each) => each.time),
    ).toEqual([1, 2]);
    expect(judgedOtherwise(graph, graph, delays)).toEqual([]);
  });
});
