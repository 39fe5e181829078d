/** The edit that is being written: a text of the network that is not applied yet, with steps back. */

import { CannotEdit, freeName, withBoxOnArrow, withBoxText } from "../lib/yaml_edit.ts";
import { choice } from "./choice.svelte.ts";
import { live } from "./live.svelte.ts";
import { tell } from "./notices.svelte.ts";

const STEPS = 100;

class Draft {
  /** null: nothing was changed, the text is the network's own. */
  text = $state<string | null>(null);
  /** The version that the text was written on. */
  version = $state(0);
  #past: (string | null)[] = [];

  get shown(): string {
    return this.text ?? live.network?.yaml ?? "";
  }

  get changed(): boolean {
    return this.text !== null && this.text !== live.network?.yaml;
  }

  write(text: string): void {
    if (text === this.shown) return;
    if (this.text === null) this.version = live.version;
    this.#past = [...this.#past, this.text].slice(-STEPS);
    this.text = text;
  }

  stepBack(): void {
    this.text = this.#past.pop() ?? null;
  }

  forget(): void {
    this.text = null;
    this.#past = [];
  }
}

export const draft = new Draft();

/** Put a new box onto an arrow, as text; it runs when the edit is applied. */
export function dropBox(kind: string, arrow: string): void {
  const [tail, head] = arrow.split(":");
  if (!editing() || tail === undefined || head === undefined) return;
  const taken = live.network?.nodes.map((node) => node.name) ?? [];
  const name = freeName(kind, [...taken, ...namesIn(draft.shown)]);
  if (tried(() => withBoxOnArrow(draft.shown, kind, name, tail, head))) {
    tell(`${name} is in the text, between ${tail} and ${head}. See what it costs, then apply it.`);
  }
}

export function changeBox(name: string, text: string): boolean {
  return editing() && tried(() => withBoxText(draft.shown, name, text));
}

function editing(): boolean {
  if (live.network?.editable && live.changeable) return true;
  tell(live.network?.why_not ?? live.whyNot ?? "This network cannot be edited here.", "trouble");
  return false;
}

function tried(edit: () => string): boolean {
  try {
    draft.write(edit());
    choice.panel = "edit";
    return true;
  } catch (error) {
    if (!(error instanceof CannotEdit)) throw error;
    tell(error.message, "trouble");
    return false;
  }
}

const namesIn = (yaml: string): string[] =>
  [...yaml.matchAll(/^ {2}(\w+):/gm)].map((match) => match[1] ?? "");
