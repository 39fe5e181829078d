/** The JSON of GET /api/status and of the `status` event, as docs/console-api.md describes it. */

type Maybe = number | null;

export interface ArrowFigures {
  readonly rate: Maybe;
  readonly train: Maybe;
  readonly tuples: Maybe;
  readonly estimated: boolean;
  readonly waiting: Maybe;
  readonly waiting_bytes: Maybe;
  readonly age: Maybe;
  readonly selectivity: Maybe;
  readonly utility: Maybe;
  readonly serves: readonly string[];
}

export interface BoxFigures {
  readonly rows_in: number;
  readonly rows_out: number;
  readonly dead: number;
  readonly dropped: number;
  readonly selectivity: Maybe;
  readonly wall: number;
  readonly cpu: number;
  readonly rate_in: Maybe;
  readonly rate_out: Maybe;
}

export interface SubnetworkFigures {
  readonly name: string;
  readonly trains: number;
  readonly rows: number;
  readonly rate: number;
  readonly length: number;
  readonly train: number;
  readonly trigger: number;
  readonly idle: readonly string[];
  readonly held: boolean;
  readonly running: boolean | null;
  readonly since: Maybe;
  readonly waiting: Maybe;
  readonly priority: Maybe;
}

export interface OutputFigures {
  readonly name: string;
  readonly weight: Maybe;
  readonly utility: Maybe;
  readonly utility_minute: Maybe;
  readonly delay_p50: Maybe;
  readonly delay_p99: Maybe;
  readonly share: Maybe;
  readonly in_zone: boolean | null;
  readonly exact_since: Maybe;
}

export interface SourceFigures {
  readonly name: string;
  readonly offered: number;
  readonly let_in: number;
  readonly shed: number;
  readonly dead: number;
  readonly late: number;
  readonly offered_rate: Maybe;
  readonly shed_rate: Maybe;
  readonly waiting: Maybe;
  readonly age: Maybe;
}

export interface PointReach {
  readonly rows: number;
  readonly bytes: number;
  readonly oldest: Maybe;
  readonly newest: Maybe;
  readonly reaches: Maybe;
}

export type Row = Readonly<Record<string, unknown>>;
export type Second = readonly [second: number, tuples: number, p50: Maybe, p99: Maybe, age: Maybe];

export interface Held {
  readonly subnetwork: string;
  readonly by: string | null;
  readonly until: Maybe;
  readonly why: string | null;
}

export interface Breakpoint {
  readonly id: string | number;
  readonly arrow: string;
  readonly condition: string;
  readonly subnetwork: string;
  readonly by: string | null;
  readonly hits: number;
}

export interface Attached {
  readonly name: string;
  readonly point: string;
  readonly query?: string | null;
  readonly view?: boolean;
  readonly by?: string | null;
}

export interface Status {
  readonly network: string;
  readonly version: number;
  readonly time: number;
  readonly state: string;
  readonly error: string | null;
  readonly changeable: boolean;
  readonly why_not: string | null;
  readonly dead: number;
  readonly subnetworks: readonly SubnetworkFigures[];
  readonly boxes: Readonly<Record<string, BoxFigures>>;
  readonly outputs: readonly OutputFigures[];
  readonly sources: readonly SourceFigures[];
  readonly arrows: Readonly<Record<string, ArrowFigures>>;
  readonly worst: readonly string[];
  readonly points: Readonly<Record<string, PointReach>>;
  readonly seconds: Readonly<Record<string, readonly Second[]>>;
  readonly valves: readonly Row[];
  readonly load: Maybe | Row;
  readonly capacity: Maybe;
  readonly qos: Row | null;
  readonly held: readonly Held[];
  readonly breakpoints: readonly Breakpoint[];
  readonly attached: readonly (Attached | string)[];
}
