/** Connects the stream of events with the state of the page. */

import { me } from "../api/calls.ts";
import { get } from "../api/client.ts";
import { ownBrowser, SharedEvents } from "../api/shared_events.ts";
import type { Status } from "../api/status_shapes.ts";
import { live } from "./live.svelte.ts";
import { attempt } from "./notices.svelte.ts";

type Taker = (data: unknown) => void;
const KINDS = ["status", "decision", "network", "tuples", "rows", "held", "end"] as const;
const takers = new Map<string, Set<Taker>>();

/** Hear one kind of event; call the result to stop. */
export function on(kind: (typeof KINDS)[number], taker: Taker): () => void {
  const known = takers.get(kind) ?? new Set<Taker>();
  takers.set(kind, known.add(taker));
  return () => known.delete(taker);
}

export async function start(): Promise<() => void> {
  await live.load();
  if (live.stranger) return () => undefined;
  live.mayChange = (await attempt(me))?.may_change ?? false;
  const events = new SharedEvents(ownBrowser(), "/api/events", KINDS, heard);
  events.start();
  await firstStatus();
  return () => events.stop();
}

/** A tab that joins others would otherwise wait for the next event. */
async function firstStatus(): Promise<void> {
  try {
    live.take(await get<Status>("/api/status"));
  } catch {
    live.connected = false;
  }
}

function heard(kind: string, data: unknown): void {
  if (kind === "connected") live.connected = data as boolean;
  else if (kind === "end") live.ended();
  else if (kind === "network") void live.load();
  else if (kind === "status") {
    live.connected = true;
    live.take(data as Status);
  }
  for (const taker of takers.get(kind) ?? []) taker(data);
}
