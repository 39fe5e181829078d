/** The figures of a box now, for queries on the diagram. */

import type { Status } from "../api/status_shapes.ts";
import type { Figures } from "./diagram_query.ts";

const UNKNOWN: Figures = { utility: null, rate: null, waiting: null, dropped: null };

export function nodeFigures(name: string, status: Status | null): Figures {
  if (!status) return UNKNOWN;
  const into = Object.entries(status.arrows)
    .filter(([id]) => id.split(":")[1] === name)
    .map(([, arrow]) => arrow);
  const box = status.boxes[name];
  const output = status.outputs.find((each) => each.name === name);
  const behind = into.flatMap((arrow) => arrow.utility ?? []);
  const waiting = into.flatMap((arrow) => arrow.waiting ?? []);
  return {
    utility: output?.utility_minute ?? (behind.length > 0 ? Math.min(...behind) : null),
    rate: box?.rate_out ?? null,
    waiting: waiting.length > 0 ? waiting.reduce((a, b) => a + b, 0) : null,
    dropped: box?.dropped ?? null,
  };
}
