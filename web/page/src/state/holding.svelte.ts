/** Which sub-networks are held, and the page's own sign of life: when the page is gone, they go on. */

import { steps, type Step } from "../api/calls.ts";
import { live } from "./live.svelte.ts";
import { attempt, tell } from "./notices.svelte.ts";

const SECONDS = 60;
const RENEW = 20_000; // milliseconds

class Holding {
  /** The last steps of this page, newest first. */
  steps = $state.raw<readonly Step[]>([]);
  stepping = $state(false);
  /** What this page holds itself, and must ask for again. */
  readonly #own = new Set<string>();
  #timer: ReturnType<typeof setInterval> | null = null;

  async hold(name: string): Promise<void> {
    if ((await attempt(() => steps.hold(live.version, name, SECONDS))) === null) return;
    this.#own.add(name);
    this.#timer ??= setInterval(() => void this.#renew(), RENEW);
  }

  async release(name: string): Promise<void> {
    this.#own.delete(name);
    await attempt(() => steps.release(live.version, name));
  }

  async step(name: string, tuples: number | null): Promise<void> {
    this.stepping = true;
    const step = await attempt(() => steps.step(live.version, name, tuples));
    this.stepping = false;
    if (step === null) return;
    if (step.train === null) tell(`No tuple came to ${name} within ten seconds: there was nothing to step.`);
    else this.steps = [step, ...this.steps].slice(0, 50);
  }

  async #renew(): Promise<void> {
    const held = new Set(live.status?.held.map((each) => each.subnetwork));
    for (const name of this.#own) {
      if (held.has(name)) await attempt(() => steps.hold(live.version, name, SECONDS));
      else this.#own.delete(name);
    }
    if (this.#own.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }
}

export const holding = new Holding();
