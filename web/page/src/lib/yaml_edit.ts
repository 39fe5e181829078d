/**
 * Small edits of a network's text. The text is that of `to_yaml`: boxes two spaces deep, one key a line, so
 * lines are enough to find a box and its inputs. What does not fit is refused with a sentence.
 */

export class CannotEdit extends Error {}

interface Block {
  readonly start: number;
  readonly end: number; // one behind its last line
}

/** Lines of a new box by kind; the last line is added: where it reads from. */
export const NEW_BOXES: Readonly<Record<string, readonly string[]>> = {
  filter: ['filter: "true"'],
  map: ["map:", "  note: \"'new'\""],
  drop: ["drop: 0.1"],
  connection_point: ["connection_point: 1 hour"],
};

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const nameIn = (name: string): string => `(?:"${escaped(name)}"|'${escaped(name)}'|${escaped(name)})`;

function blockOf(lines: readonly string[], name: string): Block {
  const start = lines.findIndex((line) => new RegExp(`^  ${nameIn(name)}:\\s*$`).test(line));
  if (start < 0)
    throw new CannotEdit(`The text has no box ${name} on a line of its own: change the text itself.`);
  let end = start + 1;
  while (end < lines.length && /^(\s{3,}|\s*$)/.test(lines[end] ?? "")) end += 1;
  return { start, end };
}

/** The text of one box, without the indentation around it. */
export function boxText(yaml: string, name: string): string {
  const lines = yaml.split("\n");
  const { start, end } = blockOf(lines, name);
  return (
    lines
      .slice(start, end)
      .map((line) => line.slice(2))
      .join("\n")
      .trimEnd() + "\n"
  );
}

/** The network's text with another text for one box. */
export function withBoxText(yaml: string, name: string, text: string): string {
  const lines = yaml.split("\n");
  const { start, end } = blockOf(lines, name);
  const fresh = text
    .trimEnd()
    .split("\n")
    .map((line) => (line === "" ? "" : `  ${line}`));
  return [...lines.slice(0, start), ...fresh, ...lines.slice(end)].join("\n");
}

/** A name that no box has yet: filter_new, filter_new_2, ... */
export function freeName(kind: string, taken: readonly string[]): string {
  const base = `${kind === "connection_point" ? "point" : kind}_new`;
  if (!taken.includes(base)) return base;
  let number = 2;
  while (taken.includes(`${base}_${String(number)}`)) number += 1;
  return `${base}_${String(number)}`;
}

/** The text with a new box on the arrow from `tail` into `head` (A40). */
export function withBoxOnArrow(yaml: string, kind: string, name: string, tail: string, head: string): string {
  const shape = NEW_BOXES[kind];
  if (!shape) throw new CannotEdit(`A ${kind} cannot be dropped on an arrow.`);
  const lines = yaml.split("\n");
  const { start, end } = blockOf(lines, head);
  const reads = lines.slice(start, end).findIndex((line) => inputPattern(tail).test(line));
  if (reads < 0) throw new CannotEdit(`${head} does not name ${tail} on one line: change the text itself.`);
  const at = start + reads;
  lines[at] = replacedInput(lines[at] ?? "", tail, name);
  const fresh = [`  ${name}:`, ...shape.map((line) => `    ${line}`), `    from: ${tail}`];
  return [...lines.slice(0, start), ...fresh, ...lines.slice(start)].join("\n");
}

const inputPattern = (tail: string): RegExp =>
  new RegExp(
    `^    (?:from|union|join|left|right):.*(?<![\\w])${nameIn(tail)}(?![\\w])|^      - ${nameIn(tail)}\\s*$`,
  );

function replacedInput(line: string, tail: string, name: string): string {
  const key = /^\s*(?:\w+:|-)/.exec(line)?.[0] ?? "";
  return key + line.slice(key.length).replace(new RegExp(`(?<![\\w])${nameIn(tail)}(?![\\w])`), name);
}
