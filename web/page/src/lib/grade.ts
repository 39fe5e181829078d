/** Utilities in four grades. The colours are safe for the colour-blind; the number always stands beside. */

export type Grade = "good" | "fair" | "poor" | "bad" | "unknown";

export function grade(utility: number | null | undefined): Grade {
  if (typeof utility !== "number" || !Number.isFinite(utility)) return "unknown";
  if (utility >= 0.9) return "good";
  if (utility >= 0.6) return "fair";
  return utility >= 0.3 ? "poor" : "bad";
}

/** Line width for a rate: one step for each power of ten. */
export function thickness(rate: number | null | undefined): number {
  if (typeof rate !== "number" || !(rate > 0)) return 1.4;
  return Math.min(9, 1.6 + 1.25 * Math.log10(1 + rate));
}
