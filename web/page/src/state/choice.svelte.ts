/** What a person has chosen: an arrow or a box, a panel, closed groups, the view of the canvas. */

import { beginning, centred, fitted, zoomAt, type Rect, type Size, type View } from "../canvas/view.ts";

export type Panel = "arrows" | "monitor" | "box" | "step" | "qos" | "questions" | "edit" | "road" | "past";

export type Direction = "across" | "down";
const DIRECTION = "penstock direction";

function kept(): Direction | null {
  const found = localStorage.getItem(DIRECTION);
  return found === "across" || found === "down" ? found : null;
}

class Choice {
  arrow = $state<string | null>(null);
  box = $state<string | null>(null);
  panel = $state<Panel>("arrows");
  /** Whether the panels are put away, so that the canvas has all of the width. */
  wide = $state(false);
  closed = $state.raw<ReadonlySet<string>>(new Set());
  view = $state.raw<View>({ x: 0, y: 0, scale: 1 });
  screen = $state.raw<Size>({ width: 1, height: 1 });
  /** Where tuples flow in the picture; null: as it fits the screen better. */
  direction = $state<Direction | null>(kept());
  /** Boxes that a search has found. */
  found = $state.raw<ReadonlySet<string>>(new Set());

  chooseArrow(id: string | null): void {
    this.arrow = id;
    this.box = null;
    if (id !== null && this.panel !== "step") this.panel = "monitor";
  }

  chooseBox(name: string | null): void {
    this.box = name;
    this.arrow = null;
    if (name !== null && this.panel !== "edit" && this.panel !== "step") this.panel = "box";
  }

  turn(direction: Direction): void {
    this.direction = direction;
    localStorage.setItem(DIRECTION, direction);
  }

  toggleGroup(path: string): void {
    const others = [...this.closed].filter((each) => each !== path);
    this.closed = new Set(this.closed.has(path) ? others : [...others, path]);
  }

  /** Open all groups around something inside this group path. */
  reveal(group: string): void {
    const parts = group.split("/");
    const around = new Set(parts.map((_, depth) => parts.slice(0, depth + 1).join("/")));
    if ([...this.closed].some((path) => around.has(path))) {
      this.closed = new Set([...this.closed].filter((path) => !around.has(path)));
    }
  }

  fit(rect: Rect): void {
    this.view = fitted(rect, this.screen);
  }

  begin(rect: Rect, first?: Rect): void {
    this.view = beginning(rect, this.screen, first);
  }

  goTo(rect: Rect): void {
    this.view = centred(rect, this.screen, Math.max(0.75, this.view.scale));
  }

  zoom(factor: number): void {
    this.view = zoomAt(this.view, { x: this.screen.width / 2, y: this.screen.height / 2 }, factor);
  }
}

export const choice = new Choice();
