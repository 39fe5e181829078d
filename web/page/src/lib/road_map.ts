/** The road map of the shedder: rows from the whole load down to the least, each cheaper than the one before. */

export interface RoadMapRow {
  /** The part of the load that is left, 0 to 1. */
  readonly load: number;
  /** Utility that is lost. */
  readonly lost: number;
  /** What each output keeps. */
  readonly shares: Readonly<Record<string, number>>;
}

export interface RoadMap {
  /** CPU seconds a second before anything is shed. */
  readonly load: number;
  readonly rows: readonly RoadMapRow[];
}

/** A row for each tenth of the load, as `penstock qos map` prints them, and the last one. */
export function tenths(rows: readonly RoadMapRow[]): RoadMapRow[] {
  const shown: RoadMapRow[] = [];
  let told = 2;
  rows.forEach((row, at) => {
    if (told - row.load < 0.1 - 1e-9 && at !== rows.length - 1) return;
    told = row.load;
    shown.push(row);
  });
  return shown;
}

/** The outputs that lose something. */
export const less = (row: RoadMapRow): [string, number][] =>
  Object.entries(row.shares).filter(([, share]) => share < 1);
