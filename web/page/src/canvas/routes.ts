/** The path of an arrow, as `penstock draw` bends it: it leaves and enters each point level. */

type Point = readonly [number, number];

const at = (value: number): string => value.toFixed(1);

export function curve(points: readonly Point[]): string {
  const first = points[0];
  if (!first) return "";
  let text = `M${at(first[0])},${at(first[1])}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (!a || !b || (a[0] === b[0] && a[1] === b[1])) continue;
    const bend = b[0] <= a[0] ? Math.max((a[0] - b[0]) / 2, 24) : (b[0] - a[0]) / 2;
    text += ` C${at(a[0] + bend)},${at(a[1])} ${at(b[0] - bend)},${at(b[1])} ${at(b[0])},${at(b[1])}`;
  }
  return text;
}

/** The place of an arrow's label: the middle of its longest piece. */
export function labelPoint(points: readonly Point[]): Point {
  let best: Point = points[0] ?? [0, 0];
  let longest = -1;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (!a || !b) continue;
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    if (length > longest) {
      longest = length;
      best = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    }
  }
  return best;
}
