/** The figures of several arrows that are drawn as one: sums of what flows, the worst of what is judged. */

import type { ArrowFigures } from "../api/status_shapes.ts";

type Maybe = number | null;

/** A sum with an unknown part is unknown. */
export function sum(values: readonly Maybe[]): Maybe {
  let total: Maybe = values.length > 0 ? 0 : null;
  for (const value of values) total = total === null || value === null ? null : total + value;
  return total;
}

function best(values: readonly Maybe[], choose: (...known: number[]) => number): Maybe {
  const known = values.filter((value): value is number => value !== null);
  return known.length > 0 ? choose(...known) : null;
}

export function joined(figures: readonly ArrowFigures[]): ArrowFigures | null {
  const first = figures[0];
  if (!first || figures.length === 1) return first ?? null;
  return {
    rate: sum(figures.map((each) => each.rate)),
    train: sum(figures.map((each) => each.train)),
    tuples: sum(figures.map((each) => each.tuples)),
    estimated: figures.some((each) => each.estimated),
    // Where something waits on one arrow, that is what to see; arrows inside a train have no queue.
    waiting: best(
      figures.map((each) => each.waiting),
      (...known) => known.reduce((a, b) => a + b, 0),
    ),
    waiting_bytes: best(
      figures.map((each) => each.waiting_bytes),
      (...known) => known.reduce((a, b) => a + b, 0),
    ),
    age: best(
      figures.map((each) => each.age),
      Math.max,
    ),
    selectivity: null,
    utility: best(
      figures.map((each) => each.utility),
      Math.min,
    ),
    serves: [...new Set(figures.flatMap((each) => each.serves))],
  };
}
