/** Numbers as people read them. What nobody measured is `unknown`, never 0. */

export const UNKNOWN = "unknown";
type Maybe = number | null | undefined;

const known = (value: Maybe): value is number => typeof value === "number" && Number.isFinite(value);

/** Three digits at most: 0.42, 9.8, 12.3k, 4.1M. */
export function count(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size >= 999_500_000) return `${digits(value / 1e9)}G`;
  if (size >= 999_500) return `${digits(value / 1e6)}M`;
  if (size >= 9_995) return `${digits(value / 1e3)}k`;
  return digits(value);
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return Number(value.toFixed(size >= 10 ? 1 : 2)).toString();
}

/** Tuples a second. */
export function rate(value: Maybe): string {
  return known(value) ? `${count(value)}/s` : UNKNOWN;
}

export function seconds(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  if (value === 0) return "0 s";
  if (Math.abs(value) < 0.9995) return `${digits(value * 1000)} ms`;
  if (Math.abs(value) < 119.5) return `${digits(value)} s`;
  if (Math.abs(value) < 7_170) return `${digits(Math.round(value / 6) / 10)} min`;
  return `${digits(Math.round(value / 360) / 10)} h`;
}

export function bytes(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  if (value < 1_000) return `${String(Math.round(value))} B`;
  if (value < 999_500) return `${digits(value / 1e3)} kB`;
  if (value < 999_500_000) return `${digits(value / 1e6)} MB`;
  return `${digits(value / 1e9)} GB`;
}

/** A share between 0 and 1, as per cent. */
export function percent(value: Maybe): string {
  return known(value) ? `${digits(value * 100)} %` : UNKNOWN;
}

/** A utility between 0 and 1. */
export function utility(value: Maybe): string {
  return known(value) ? value.toFixed(2) : UNKNOWN;
}

/** A wall time (seconds since 1970) as the clock shows it. */
export function clock(value: Maybe): string {
  return known(value) ? new Date(value * 1000).toLocaleTimeString("en-GB") : UNKNOWN;
}

export function dateTime(value: Maybe): string {
  return known(value) ? new Date(value * 1000).toLocaleString("en-GB") : UNKNOWN;
}

const TIMESTAMP = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?(?:\+00:00|Z)$/;

/** Any value of a tuple as text. A time is shown to the millisecond, and without the date of today. */
export function cell(value: unknown, today = new Date().toISOString().slice(0, 10)): string {
  if (value === null || value === undefined) return "null";
  const [, day, time, rest = ""] = (typeof value === "string" && TIMESTAMP.exec(value)) || [];
  if (day && time) return `${day === today ? "" : `${day} `}${time}${rest.slice(0, 4)}`;
  return typeof value === "object" ? JSON.stringify(value) : String(value as string | number | boolean);
}

/** "1 box", "3 boxes". */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}
