/** The JSON of GET /api/history, /api/decisions and /api/dead-letters, as docs/console-api.md describes it. */

import type { Row } from "./status_shapes.ts";

type Maybe = number | null;

export interface OutputSecond {
  readonly second: number;
  readonly tuples: number;
  readonly delay_p50: Maybe;
  readonly delay_p99: Maybe;
  readonly age: Maybe;
  readonly share: number;
  readonly utility: Maybe;
}

export interface Decision {
  readonly id: number;
  readonly time: number;
  readonly kind: string;
  readonly subject: string;
  readonly sentence: string;
  readonly numbers?: Row;
  readonly expected?: unknown;
  readonly realised?: unknown;
  readonly until?: Maybe;
}

export interface PastEvent {
  readonly kind: string;
  readonly subject: string;
  readonly time: number;
  readonly detail: Row;
}

export interface History {
  readonly seconds: number;
  readonly newest: Maybe;
  readonly inputs: Readonly<
    Record<string, readonly { time: number; offered_rate: Maybe; waiting: Maybe; age: Maybe }[]>
  >;
  readonly outputs: Readonly<Record<string, readonly OutputSecond[]>>;
  readonly decisions: readonly Decision[];
  readonly events: readonly PastEvent[];
}

export interface DeadLetters {
  readonly total: number;
  readonly reasons: readonly { box: string; reason: string; tuples: number }[];
  readonly rows: readonly Row[];
}
