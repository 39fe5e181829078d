/** A bounded series: a page that stays open for a day keeps as much as one that was just opened. */

export class Series {
  readonly times: number[] = [];
  readonly values: (number | null)[] = [];
  readonly #most: number;

  constructor(most = 600) {
    this.#most = most;
  }

  /** Add a value; a second one at the same time replaces the first. */
  push(time: number, value: number | null): void {
    const last = this.times.length - 1;
    const newest = this.times[last];
    if (newest !== undefined && time <= newest) {
      if (time === newest) this.values[last] = value;
      return;
    }
    this.times.push(time);
    this.values.push(value);
    if (this.times.length > this.#most) {
      this.times.shift();
      this.values.shift();
    }
  }

  get latest(): number | null {
    return this.values.at(-1) ?? null;
  }
}

/** Series by name, at most so many names: the one that was not written for longest goes first. */
export class SeriesByName {
  readonly #series = new Map<string, Series>();
  readonly #names: number;
  readonly #most: number;

  constructor(names = 2_000, most = 600) {
    this.#names = names;
    this.#most = most;
  }

  push(name: string, time: number, value: number | null): void {
    const series = this.#series.get(name) ?? new Series(this.#most);
    series.push(time, value);
    this.#series.delete(name);
    this.#series.set(name, series);
    const oldest = this.#series.keys().next().value;
    if (this.#series.size > this.#names && oldest !== undefined) this.#series.delete(oldest);
  }

  get(name: string): Series | undefined {
    return this.#series.get(name);
  }

  get size(): number {
    return this.#series.size;
  }
}

/** Put items in front of a list that keeps at most so many. */
export function latestFirst<T>(fresh: readonly T[], old: readonly T[], most: number): T[] {
  return [...fresh, ...old].slice(0, most);
}
