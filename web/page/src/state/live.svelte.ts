/** What the page knows of the run: the network, its latest status, and bounded series of both. */

import { get, Refused } from "../api/client.ts";
import type { Network, NetworkArrow, NetworkNode } from "../api/network_shapes.ts";
import type { ArrowFigures, Status } from "../api/status_shapes.ts";
import { spread } from "../canvas/spread.ts";
import { fitted, READABLE } from "../canvas/view.ts";
import { joined } from "../lib/joined_figures.ts";
import { SeriesByName } from "../lib/series.ts";
import { choice } from "./choice.svelte.ts";

class Live {
  network = $state.raw<Network | null>(null);
  status = $state.raw<Status | null>(null);
  connected = $state(false);
  /** Whether the token of this browser allows changes. */
  mayChange = $state(true);
  /** The server wants a token that this browser does not have. */
  stranger = $state(false);
  /** Why nothing can be shown. */
  trouble = $state("");
  /** Counts statuses, so that what reads the plain series below is drawn again. */
  beat = $state(0);
  readonly series = new SeriesByName();
  readonly #nodes = $derived(new Map(this.network?.nodes.map((node) => [node.name, node])));

  node(name: string): NetworkNode | undefined {
    return this.#nodes.get(name);
  }

  get changeable(): boolean {
    return this.mayChange && (this.status?.changeable ?? false);
  }

  /** Why nothing can be changed here; null while it can. */
  get whyNot(): string | null {
    return this.mayChange ? (this.status?.why_not ?? null) : "your token is for looking only";
  }

  get isLinearRoad(): boolean {
    return this.network?.linear_road ?? false;
  }

  get version(): number {
    return this.network?.version ?? 0;
  }

  /** The figures of an arrow; of several in one at a closed group. */
  figures(arrow: Pick<NetworkArrow, "members">): ArrowFigures | null {
    const known = this.status?.arrows ?? {};
    return joined(arrow.members.flatMap((id) => known[id] ?? []));
  }

  take(status: Status): void {
    this.status = status;
    for (const [id, arrow] of Object.entries(status.arrows)) {
      this.series.push(`rate ${id}`, status.time, arrow.rate);
      this.series.push(`waiting ${id}`, status.time, arrow.waiting);
      this.series.push(`age ${id}`, status.time, arrow.age);
    }
    for (const output of status.outputs) {
      this.series.push(`utility ${output.name}`, status.time, output.utility);
      this.series.push(`p50 ${output.name}`, status.time, output.delay_p50);
      this.series.push(`p99 ${output.name}`, status.time, output.delay_p99);
    }
    this.beat += 1;
    if (this.network && status.version !== this.network.version) void this.load();
  }

  /** The server has said that it ends: what is shown is the last state. */
  ended(): void {
    this.connected = false;
    if (this.status)
      this.status = { ...this.status, state: "ended", changeable: false, why_not: "the run has ended" };
  }

  async load(): Promise<void> {
    try {
      this.network = await pictured();
      this.trouble = "";
    } catch (error) {
      this.stranger = error instanceof Refused && error.status === 401;
      this.trouble = error instanceof Refused ? error.message : String(error);
    }
  }
}

/** The picture in the direction that the person wants; otherwise in the one that fits the screen better. */
async function pictured(): Promise<Network> {
  const across = spread(await get<Network>("/api/network"));
  if (choice.direction === "across" || (choice.direction === null && readable(across))) return across;
  const down = await get<Network>("/api/network", { direction: "down" });
  return choice.direction === "down" || scaleOf(down) > scaleOf(across) ? down : across;
}

const scaleOf = ({ width, height }: Network): number =>
  fitted({ x: 0, y: 0, width, height }, choice.screen).scale;
const readable = (network: Network): boolean => scaleOf(network) >= READABLE;

export const live = new Live();
