/** Sentences for the person: what was done, or why not. They stand until read or until newer ones come. */

import { Refused } from "../api/client.ts";

export interface Notice {
  readonly id: number;
  readonly text: string;
  readonly kind: "done" | "trouble";
}

const MOST = 4;

class Notices {
  list = $state.raw<readonly Notice[]>([]);
  #next = 1;

  add(text: string, kind: Notice["kind"]): void {
    this.list = [...this.list.filter((each) => each.text !== text), { id: this.#next, text, kind }].slice(
      -MOST,
    );
    this.#next += 1;
  }

  dismiss(id: number): void {
    this.list = this.list.filter((each) => each.id !== id);
  }
}

export const notices = new Notices();

export const tell = (text: string, kind: Notice["kind"] = "done"): void => notices.add(text, kind);

export function reason(error: unknown): string {
  if (!(error instanceof Refused)) return `The page failed: ${String(error)}`;
  const difference = error.body["difference"];
  return Array.isArray(difference)
    ? [error.message, "what has changed:", ...difference.map((line) => `  ${String(line)}`)].join("\n")
    : error.message;
}

/** Do something that the server may refuse; the refusal is told, and null comes back. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    tell(reason(error), "trouble");
    return null;
  }
}
