/** One function a route, so that the panels know no addresses. Every write carries the network's version. */

import type { Graph } from "../lib/graph.ts";
import type { RoadMap } from "../lib/road_map.ts";
import { get, post, route, send } from "./client.ts";
import type { Column } from "./network_shapes.ts";
import type { Row } from "./status_shapes.ts";

export interface Passed {
  readonly n: number;
  readonly at: number;
  readonly tuple: Row;
}

export interface Tuples {
  readonly columns: readonly string[];
  readonly next: number;
  readonly rows: readonly Passed[];
  readonly watched: boolean;
  readonly sampled: string;
}

export interface Bookmark {
  readonly name: string;
  readonly view: { x: number; y: number; scale: number; closed: readonly string[] };
}

/** An error of the API; `line` and `column` from 1 where known. */
export interface Problem {
  readonly error: string;
  readonly line?: number | null;
  readonly column?: number | null;
  readonly box?: string | null;
}

export interface Preview {
  readonly ok: boolean;
  readonly version: number;
  readonly yaml: string | null;
  readonly words: readonly string[];
  readonly effects: readonly string[];
  readonly subnetworks: readonly {
    name: string;
    change: string;
    blip: number | null;
    blip_measured: number;
  }[];
  readonly needs_fresh_state: boolean;
  readonly needs_new_checkpoint: string | null;
  readonly error: Problem | null;
}

export interface Applied {
  readonly version: number;
  readonly blips: Readonly<Record<string, number | null>>;
  readonly words: readonly string[];
}

export interface Version {
  readonly version: number;
  readonly time: number;
  readonly by: string | null;
  readonly words: readonly string[] | string | null;
  readonly form: string;
}

export interface Step {
  readonly subnetwork: string;
  readonly train: number | null;
  readonly rows: number;
  readonly seconds: number;
  readonly boxes: readonly {
    box: string;
    took: number;
    gave: number;
    dead: number;
    tuples?: readonly Row[];
  }[];
}

export interface Checked {
  readonly ok: boolean;
  readonly columns?: readonly Column[];
  readonly error?: Problem;
}

export interface AttachedRows {
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: readonly Passed[];
  readonly next: number;
  readonly total: number;
}

export interface QosGraphs {
  readonly delay: Graph;
  readonly loss: Graph;
  readonly value: Graph;
  readonly column: string;
  readonly weight: number;
  readonly approximate: boolean;
}

export interface Me {
  readonly name: string | null;
  readonly may_change: boolean;
}

export const me = (): Promise<Me> => get("/api/me");

export const login = (token: string): Promise<unknown> => post("/api/login", { token });

export const tuples = (arrow: string, after: number, condition: string): Promise<Tuples> =>
  get<Tuples>(`/api/arrows/${encodeURIComponent(arrow)}/tuples`, { after, limit: 100, condition });

export const bookmarks = {
  list: (): Promise<{ bookmarks: readonly Bookmark[] }> => get("/api/bookmarks"),
  keep: ({ name, view }: Bookmark): Promise<unknown> => send("PUT", route("bookmarks", name), { view }),
  forget: (name: string): Promise<unknown> => send("DELETE", route("bookmarks", name)),
};

export const steps = {
  hold: (version: number, subnetwork: string, seconds: number): Promise<Row> =>
    post("/api/hold", { version, subnetwork, seconds }),
  step: (version: number, subnetwork: string, tuples: number | null): Promise<Step> =>
    post("/api/step", { version, subnetwork, tuples }),
  release: (version: number, subnetwork: string): Promise<Row> =>
    post("/api/release", { version, subnetwork }),
  breakAt: (version: number, arrow: string, condition: string): Promise<Row> =>
    post("/api/breakpoints", { version, arrow, condition }),
  unbreak: (id: string | number): Promise<unknown> => send("DELETE", route("breakpoints", String(id))),
};

export const changeQos = (version: number, output: string, qos: QosGraphs): Promise<Row> =>
  post(route("qos", output), { version, qos });

export const roadMap = (): Promise<{ map: RoadMap | null }> => get("/api/road-map");

export const attached = {
  check: (point: string, query: string): Promise<Checked> => post("/api/attach/check", { point, query }),
  attach: (
    version: number,
    point: string,
    query: string,
    name: string,
    keep: string,
  ): Promise<{ name: string }> =>
    post("/api/attach", { version, point, query, ...(name ? { name } : {}), ...(keep ? { keep } : {}) }),
  rows: (name: string, after: number): Promise<AttachedRows> =>
    get(`${route("attached", name)}/rows`, { after, limit: 500 }),
  detach: (version: number, name: string): Promise<Row> => post("/api/detach", { version, name }),
};

export const edits = {
  preview: (version: number, yaml: string): Promise<Preview> => post("/api/edit/preview", { version, yaml }),
  apply: (version: number, yaml: string, fresh: boolean): Promise<Applied> =>
    post("/api/edit/apply", { version, yaml, fresh_state: fresh }),
  undo: (version: number): Promise<Applied> => post("/api/edit/undo", { version }),
  versions: (): Promise<{ versions: readonly Version[] }> => get("/api/versions"),
};
