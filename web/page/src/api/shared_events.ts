/**
 * One stream of events for all tabs of a browser. HTTP/1.1 allows six connections to a server, so the tabs
 * share: the tab that holds the lock reads the stream and tells the others over a channel. When it closes,
 * the lock goes to the next tab. Only the latest message of each kind waits for a tab that sleeps.
 */

export type Listener = (kind: string, data: unknown) => void;

export interface Source {
  addEventListener(kind: string, listener: (event: { data: string }) => void): void;
  close(): void;
  onopen: (() => void) | null;
  onerror: (() => void) | null;
}

export interface Channel {
  postMessage(message: unknown): void;
  onmessage: ((event: { data: unknown }) => void) | null;
  close(): void;
}

/** What the browser offers; tests give their own. */
export interface Browser {
  source(url: string): Source;
  channel(name: string): Channel | null;
  /** Call back while the lock is held: at once, or when the tab before is gone. */
  locked(name: string, held: () => Promise<void>): void;
}

interface Told {
  readonly kind: string;
  readonly data: unknown;
}

export class SharedEvents {
  readonly #browser: Browser;
  readonly #channel: Channel | null;
  readonly #url: string;
  readonly #kinds: readonly string[];
  readonly #listener: Listener;
  #source: Source | null = null;
  #release: (() => void) | null = null;

  constructor(browser: Browser, url: string, kinds: readonly string[], listener: Listener) {
    this.#browser = browser;
    this.#url = url;
    this.#kinds = kinds;
    this.#listener = listener;
    this.#channel = browser.channel(`penstock ${url}`);
    if (this.#channel) this.#channel.onmessage = (event) => this.#heard(event.data);
  }

  start(): void {
    this.#browser.locked(`penstock ${this.#url}`, () => this.#lead());
  }

  /** Whether this tab reads the stream. */
  get leads(): boolean {
    return this.#source !== null;
  }

  stop(): void {
    this.#source?.close();
    this.#source = null;
    this.#release?.();
    this.#channel?.close();
  }

  #lead(): Promise<void> {
    const source = this.#browser.source(this.#url);
    this.#source = source;
    for (const kind of this.#kinds) {
      source.addEventListener(kind, (event) => this.#tell({ kind, data: JSON.parse(event.data) as unknown }));
    }
    source.onopen = () => this.#tell({ kind: "connected", data: true });
    source.onerror = () => this.#tell({ kind: "connected", data: false });
    return new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  #tell(told: Told): void {
    this.#channel?.postMessage(told);
    this.#listener(told.kind, told.data);
  }

  #heard(message: unknown): void {
    const told = message as Told;
    this.#listener(told.kind, told.data);
  }
}

/** The real browser. Without locks or channels each tab has a stream of its own. */
export function ownBrowser(): Browser {
  const shares = "locks" in navigator && typeof BroadcastChannel !== "undefined";
  return {
    source: (url) => new EventSource(url) as unknown as Source,
    channel: (name) => (shares ? (new BroadcastChannel(name) as unknown as Channel) : null),
    locked: (name, held) => {
      if (shares) void navigator.locks.request(name, held);
      else void held();
    },
  };
}
