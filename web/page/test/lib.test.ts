import { describe, expect, it } from "vitest";
import { span } from "../src/editor/places.ts";
import { findNodes } from "../src/lib/diagram_query.ts";
import { less, tenths, type RoadMapRow } from "../src/lib/road_map.ts";
import { bytes, cell, count, percent, rate, seconds, utility } from "../src/lib/format.ts";
import { grade, thickness } from "../src/lib/grade.ts";
import { joined, sum } from "../src/lib/joined_figures.ts";
import { latestFirst, Series, SeriesByName } from "../src/lib/series.ts";
import { network } from "./network.ts";

describe("numbers", () => {
  it("are short, and unknown is never 0", () => {
    expect([count(0), count(0.123), count(12.34), count(9_994), count(12_345), count(4.1e6)]).toEqual([
      "0",
      "0.12",
      "12.3",
      "9,994",
      "12.3k",
      "4.1M",
    ]);
    for (const text of [
      count(null),
      rate(undefined),
      seconds(NaN),
      bytes(null),
      percent(null),
      utility(null),
    ]) {
      expect(text).toBe("unknown");
    }
  });
  it("have units that fit", () => {
    expect([seconds(0.25), seconds(2.5), seconds(600), seconds(7_200)]).toEqual([
      "250 ms",
      "2.5 s",
      "10 min",
      "2 h",
    ]);
    expect([bytes(12), bytes(12_300), percent(0.305), rate(1_500)]).toEqual([
      "12 B",
      "12.3 kB",
      "30.5 %",
      "1,500/s",
    ]);
    expect([cell(null), cell({ a: 1 }), cell("x")]).toEqual(["null", '{"a":1}', "x"]);
    const time = "2026-11-17T06:22:15.950341+00:00";
    expect([cell(time, "2026-11-17"), cell(time, "2026-11-18")]).toEqual([
      "06:22:15.950",
      "2026-11-17 06:22:15.950",
    ]);
  });
});

describe("grades", () => {
  it("sort utilities, and keep the unknown apart", () => {
    expect([1, 0.9, 0.7, 0.4, 0.1, null].map(grade)).toEqual([
      "good",
      "good",
      "fair",
      "poor",
      "bad",
      "unknown",
    ]);
  });
  it("make lines thicker with the rate, within bounds", () => {
    expect(thickness(10)).toBeGreaterThan(thickness(1));
    expect(thickness(1e12)).toBe(9);
    expect(thickness(null)).toBe(thickness(0));
  });
});

describe("series", () => {
  it("stay bounded, however long a page is open", () => {
    const series = new Series(3);
    for (let time = 0; time < 100; time++) series.push(time, time);
    expect([series.times, series.latest]).toEqual([[97, 98, 99], 99]);
    const names = new SeriesByName(2, 3);
    for (const name of ["a", "b", "a", "c"]) names.push(name, 1, 1);
    expect([names.size, names.get("b"), names.get("a")?.latest]).toEqual([2, undefined, 1]);
    expect(latestFirst([3], [2, 1], 2)).toEqual([3, 2]);
  });
  it("take a time once, and none that is older", () => {
    const series = new Series();
    series.push(2, 1);
    series.push(2, 5);
    series.push(1, 9);
    expect([series.times, series.values]).toEqual([[2], [5]]);
  });
});

describe("joined figures", () => {
  const one = {
    rate: 1,
    train: 1,
    tuples: 1,
    estimated: false,
    waiting: null,
    waiting_bytes: null,
    age: 2,
    selectivity: 0.5,
    utility: 0.9,
    serves: ["x"],
  };
  it("add what flows and keep the worst of what is judged", () => {
    const both = joined([one, { ...one, rate: 2, utility: 0.3, waiting: 7, age: null }]);
    expect([both?.rate, both?.utility, both?.waiting, both?.age]).toEqual([3, 0.3, 7, 2]);
  });
  it("are unknown where a part is unknown", () => {
    expect(joined([one, { ...one, rate: null }])?.rate).toBeNull();
    expect([sum([]), sum([1, null]), joined([])]).toEqual([null, null, null]);
  });
});

describe("a query on the diagram", () => {
  const figures = (name: string) => ({
    utility: name === "a" ? 0.2 : null,
    rate: 5,
    waiting: null,
    dropped: 0,
  });
  const find = (query: string) =>
    findNodes(query, network.nodes, (node) => figures(node.name)).map((node) => node.name);
  it("finds names, kinds, columns, notes, groups", () => {
    expect([
      find("ou"),
      find("kind:source"),
      find("column:spee"),
      find("note:slow"),
      find("group:g/inner"),
    ]).toEqual([["out"], ["in"], ["b"], ["a"], ["b"]]);
  });
  it("compares figures; the unknown answers no comparison", () => {
    expect([find("utility<0.5"), find("utility>=0"), find("waiting>0"), find("rate=5 kind:output")]).toEqual([
      ["a"],
      ["a"],
      [],
      ["out"],
    ]);
  });
  it("finds nothing for nothing", () => expect(find("  ")).toEqual([]));
});

describe("places of errors", () => {
  it("mark the word at a column, else the line", () => {
    const text = "one\n  two three";
    expect(span(text, { text: "", line: 2, column: 7 })).toEqual({ from: 10, to: 15 });
    expect(span(text, { text: "", line: 2, column: null })).toEqual({ from: 6, to: 15 });
    expect(span(text, { text: "", line: 99, column: 99 })).toEqual({ from: 15, to: 15 });
  });
});

describe("the road map", () => {
  const row = (load: number, share: number): RoadMapRow => ({
    load,
    lost: 1 - share,
    shares: { a: share, b: 1 },
  });

  it("has a row for each tenth of the load, and the last one", () => {
    const loads = [1, 0.97, 0.9, 0.85, 0.5, 0.45].map((load) => row(load, load));
    expect(tenths(loads).map((each) => each.load)).toEqual([1, 0.9, 0.5, 0.45]);
    expect(tenths([])).toEqual([]);
  });

  it("names the outputs that lose something", () => {
    expect(less(row(0.5, 0.25))).toEqual([["a", 0.25]]);
  });
});
