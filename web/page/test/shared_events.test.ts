import { expect, it } from "vitest";
import { refusalText, address } from "../src/api/client.ts";
import { SharedEvents, type Browser, type Channel, type Source } from "../src/api/shared_events.ts";

/** A browser with some tabs: one lock, one channel, counted streams. */
class Tabs {
  readonly sources: { listeners: Map<string, (event: { data: string }) => void>; closed: boolean }[] = [];
  readonly channels: Channel[] = [];
  #waiting: (() => Promise<void>)[] = [];
  #locked = false;

  browser(): Browser {
    return {
      source: () => {
        const own = { listeners: new Map<string, (event: { data: string }) => void>(), closed: false };
        this.sources.push(own);
        const source: Source = {
          addEventListener: (kind, listener) => void own.listeners.set(kind, listener),
          close: () => (own.closed = true),
          onopen: null,
          onerror: null,
        };
        return source;
      },
      channel: () => {
        const channel: Channel = {
          onmessage: null,
          close: () => void this.channels.splice(this.channels.indexOf(channel), 1),
          postMessage: (data) =>
            this.channels.filter((each) => each !== channel).forEach((each) => each.onmessage?.({ data })),
        };
        this.channels.push(channel);
        return channel;
      },
      locked: (_, held) => {
        this.#waiting.push(held);
        void this.#grant();
      },
    };
  }

  async #grant(): Promise<void> {
    const next = this.#locked ? undefined : this.#waiting.shift();
    if (!next) return;
    this.#locked = true;
    await next();
    this.#locked = false;
    void this.#grant();
  }

  say(kind: string, data: unknown): void {
    for (const source of this.sources)
      if (!source.closed) source.listeners.get(kind)?.({ data: JSON.stringify(data) });
  }
}

it("all tabs of a browser share one stream, and the next one takes it over", async () => {
  const tabs = new Tabs();
  const heard: unknown[][] = [[], [], []];
  const pages = heard.map(
    (list) => new SharedEvents(tabs.browser(), "/api/events", ["status"], (_, data) => list.push(data)),
  );
  for (const page of pages) page.start();
  expect(tabs.sources.length).toBe(1);
  tabs.say("status", 1);
  expect(heard).toEqual([[1], [1], [1]]);
  pages[0]?.stop();
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect([tabs.sources.length, pages[1]?.leads, pages[2]?.leads]).toEqual([2, true, false]);
  tabs.say("status", 2);
  expect(heard).toEqual([[1], [1, 2], [1, 2]]);
});

it("a refusal says what to do", () => {
  expect(refusalText(400, { problem: "no column x", hint: "try y" })).toBe("no column x\nhint: try y");
  expect(refusalText(409, { error: "whole text", problem: "other" })).toBe("whole text");
  expect(refusalText(502, {})).toContain("502");
  expect(address("/api/x", { a: 1, b: null, c: "" })).toBe("/api/x?a=1");
});
