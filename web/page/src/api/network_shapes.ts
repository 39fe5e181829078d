/** The JSON of GET /api/network, as docs/console-api.md describes it. */

import type { Graph } from "../lib/graph.ts";

export interface Column {
  readonly name: string;
  readonly type: string;
}

export interface Qos {
  readonly delay: Graph;
  readonly loss: Graph;
  readonly value: Graph;
  readonly column: string;
  readonly weight: number;
  readonly approximate: boolean;
  readonly threshold: number;
}

export type Look = "source" | "output" | "point" | "view" | "box" | "group";

export interface NetworkNode {
  readonly name: string;
  readonly kind: string;
  readonly look: Look;
  readonly argument: string;
  /** The path of the group around it, "" outside of all. */
  readonly group: string;
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
  /** Of a closed group: its own path. */
  readonly path?: string;
  readonly subnetwork: string | null;
  readonly inputs: readonly string[];
  readonly columns: readonly Column[] | null;
  readonly keys: readonly string[];
  readonly stateful: boolean;
  readonly tag: string;
  readonly description: string;
  readonly manual: string;
  readonly qos: Qos | null;
  readonly keep: number | null;
}

export interface NetworkGroup {
  readonly path: string;
  readonly name: string;
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
  readonly tag: string;
  readonly description: string;
  readonly manual: string;
}

export interface NetworkArrow {
  readonly id: string;
  readonly tail: string;
  readonly head: string;
  readonly index: number;
  readonly members: readonly string[];
  readonly path: string;
  readonly points: readonly (readonly [number, number])[];
}

export interface Network {
  readonly name: string;
  readonly version: number;
  readonly yaml: string | null;
  readonly editable: boolean;
  readonly why_not: string | null;
  /** Whether tuples flow down; otherwise to the right. */
  readonly down: boolean;
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly NetworkNode[];
  readonly groups: readonly NetworkGroup[];
  readonly arrows: readonly NetworkArrow[];
  /** Whether it is Linear Road's network, which has a panel of its own. */
  readonly linear_road: boolean;
}
