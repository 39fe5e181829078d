/** The path of an arrow, as `penstock draw` bends it: it leaves and enters each point level. */

type Point = readonly [number, number];

const at = (value: number): string => value.toFixed(1);

/** `down`: the arrow runs from above to below, so it leaves and enters each point upright. */
export function curve(points: readonly Point[], down = false): string {
  const first = points[0];
  if (!first) return "";
  const along = down ? 1 : 0;
  const pair = (point: Point, bend = 0): string =>
    down ? `${at(point[0])},${at(point[1] + bend)}` : `${at(point[0] + bend)},${at(point[1])}`;
  let text = `M${pair(first)}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (!a || !b || (a[0] === b[0] && a[1] === b[1])) continue;
    const far = b[along] - a[along];
    const bend = far <= 0 ? Math.max(-far / 2, 24) : far / 2;
    text += ` C${pair(a, bend)} ${pair(b, -bend)} ${pair(b)}`;
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
