import { describe, expect, it } from "vitest";
import { crowdedHeads, inside, outermost, shownWith } from "../src/canvas/groups.ts";
import { network } from "./network.ts";

describe("groups", () => {
  it("show everything while none is closed", () => {
    const shown = shownWith(network, new Set());
    expect(shown.nodes.map((node) => node.name)).toEqual(["in", "a", "b", "out"]);
    expect(shown.arrows).toEqual(network.arrows);
    expect(shown.rooms).toEqual([]);
  });

  it("close in place: nothing else moves", () => {
    const before = shownWith(network, new Set());
    const after = shownWith(network, new Set(["g"]));
    expect(after.nodes.map((node) => node.name)).toEqual(["in", "out", "g/"]);
    for (const name of ["in", "out"]) {
      const place = (shown: typeof after) => shown.nodes.find((node) => node.name === name);
      expect(place(after)).toEqual(place(before));
    }
    const card = after.nodes.find((node) => node.name === "g/");
    const room = network.groups[0];
    expect(card && room && card.x >= room.x && card.x + card.w <= room.x + room.w).toBe(true);
    expect(card?.argument).toBe("2 boxes");
  });

  it("join arrows across the border, hide those inside", () => {
    const arrows = shownWith(network, new Set(["g"])).arrows;
    expect(arrows.map((arrow) => arrow.id)).toEqual(["in:g/:0", "g/:out:0"]);
    expect(arrows[1]?.members).toEqual(["b:out:0", "a:out:1"]);
  });

  it("let arrows enter from above where the picture runs down", () => {
    const shown = shownWith({ ...network, down: true }, new Set(["g"]));
    const { x, y, w, h } = shown.nodes.find((node) => node.name === "g/") ?? { x: 0, y: 0, w: 0, h: 0 };
    expect(shown.arrows[0]?.points.at(-1)).toEqual([x + w / 2, y]);
    expect(shown.arrows[1]?.points[0]).toEqual([x + w / 2, y + h]);
  });

  it("close an inner group alone", () => {
    const shown = shownWith(network, new Set(["g/inner"]));
    expect(shown.nodes.map((node) => node.name)).toContain("g/inner/");
    expect(shown.groups.map((group) => group.path)).toEqual(["g"]);
  });

  it("hide closed groups inside closed groups", () => {
    expect(outermost("g/inner", new Set(["g", "g/inner"]))).toBe("g");
    expect(shownWith(network, new Set(["g", "g/inner"])).rooms.map((room) => room.path)).toEqual(["g"]);
  });

  it("know their boxes and where arrows crowd", () => {
    expect(inside(network, "g").map((node) => node.name)).toEqual(["a", "b"]);
    expect([...crowdedHeads(network.arrows)]).toEqual(["out"]);
  });
});
