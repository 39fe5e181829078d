import { describe, expect, it } from "vitest";
import { neighbour } from "../src/canvas/navigation.ts";
import { curve } from "../src/canvas/routes.ts";
import { GAP, layers, placed, spread, WIDEST } from "../src/canvas/spread.ts";
import { beginning, fitted, LARGEST, panned, toPicture, visible, zoomAt } from "../src/canvas/view.ts";
import { arrow, network, node } from "./network.ts";

const screen = { width: 800, height: 600 };

describe("the view", () => {
  it("keeps the point under the pointer while it zooms, within bounds", () => {
    const view = { x: 10, y: 20, scale: 1 };
    const at = { x: 300, y: 200 };
    expect(toPicture(zoomAt(view, at, 2), at)).toEqual(toPicture(view, at));
    expect(zoomAt(view, at, 1e9).scale).toBe(LARGEST);
    expect(panned(view, 5, -5)).toEqual({ x: 15, y: 15, scale: 1 });
  });
  it("shows a rectangle whole", () => {
    const rect = { x: 100, y: 100, width: 4_000, height: 500 };
    const seen = visible(fitted(rect, screen), screen);
    expect(seen.x).toBeLessThan(100);
    expect(seen.x + seen.width).toBeGreaterThan(4_100);
  });
  it("begins where it can be read", () => {
    expect(beginning({ x: 0, y: 0, width: 9_000, height: 100 }, screen)).toMatchObject({
      x: 24,
      scale: 0.8,
    });
    expect(beginning({ x: 0, y: 0, width: 400, height: 100 }, screen).scale).toBe(1.25);
    // Around the first box, and never beyond the ends of the picture.
    const wide = { x: 0, y: 0, width: 9_000, height: 100 };
    const box = { x: 4_000, y: 20, width: 100, height: 40 };
    expect(beginning(wide, screen, box).x).toBe(screen.width / 2 - 4_050 * 0.8);
    expect(beginning(wide, screen, { ...box, x: 0 }).x).toBe(24);
    expect(beginning(wide, screen, { ...box, x: 8_900 }).x).toBe(screen.width - 24 - 9_000 * 0.8);
    expect(beginning({ x: 0, y: 0, width: 752, height: 920 }, screen).scale).toBe(0.6);
  });
});

describe("arrow keys", () => {
  const nodes = [node("a", 0), node("b", 200), { ...node("c", 200), y: 100 }];
  const arrows = [arrow("a", "b", 100, 200), arrow("a", "c", 100, 200)];
  it("walk along arrows, and up and down", () => {
    expect(neighbour(null, "right", nodes, arrows)).toBe("a");
    expect(neighbour("a", "right", nodes, arrows)).toBe("b");
    expect(neighbour("b", "left", nodes, arrows)).toBe("a");
    expect(neighbour("b", "down", nodes, arrows)).toBe("c");
    expect(neighbour("b", "right", nodes, arrows)).toBe("b");
    expect(neighbour("in", "right", network.nodes, network.arrows)).toBe("a");
  });
  it("walk down where the picture runs down", () => {
    const turned = nodes.map((each) => ({ ...each, x: each.y, y: each.x }));
    expect(neighbour("a", "down", turned, arrows, true)).toBe("b");
    expect(neighbour("b", "right", turned, arrows, true)).toBe("c");
    expect(neighbour("c", "up", turned, arrows, true)).toBe("a");
  });
});

it("an arrow is bent as penstock draw bends it", () => {
  expect(
    curve([
      [0, 0],
      [10, 4],
      [10, 4],
    ]),
  ).toBe("M0.0,0.0 C5.0,0.0 5.0,4.0 10.0,4.0");
  expect(
    curve(
      [
        [0, 0],
        [4, 10],
      ],
      true,
    ),
  ).toBe("M0.0,0.0 C0.0,5.0 4.0,5.0 4.0,10.0");
});

describe("room for figures", () => {
  it("is the same between all layers; order, heights and ends of arrows stay", () => {
    const wide = spread(network);
    expect(wide.nodes.map((each) => each.x)).toEqual([0, 100 + GAP, 200 + 2 * GAP, 300 + 3 * GAP]);
    expect(wide.arrows[1]?.points).toEqual([
      [200 + GAP, 25],
      [200 + 2 * GAP, 25],
    ]);
    const group = wide.groups[0];
    const [left, right] = [group?.x ?? 0, (group?.x ?? 0) + (group?.w ?? 0)];
    expect(left > 100 && left < 100 + GAP && right > 300 + 2 * GAP && right < 300 + 3 * GAP).toBe(true);
    expect(group?.y).toBe(-20);
  });
  it("narrows wide cards around their middle", () => {
    const one = spread({ ...network, nodes: [node("in", 0, { w: 400 })], arrows: [], groups: [] });
    expect(one.nodes[0]).toMatchObject({ x: 112, w: WIDEST });
  });
  it("takes cards that overlap for one layer", () => {
    expect(
      layers([
        [50, 90],
        [0, 60],
        [200, 300],
      ]),
    ).toEqual([
      [0, 90],
      [200, 300],
    ]);
    const place = placed([
      [0, 90],
      [200, 300],
    ]);
    expect([place(45), place(145), place(200), place(310)]).toEqual([45, 90 + GAP / 2, 90 + GAP, 200 + GAP]);
  });
});
