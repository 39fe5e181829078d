/** Where an error stands in a text: lines and columns from 1, as the checks tell them. */

export interface Place {
  readonly text: string;
  readonly line: number | null;
  readonly column: number | null;
}

/** The characters to mark: from the column to the end of the word, else the line, else the first line. */
export function span(text: string, place: Place): { from: number; to: number } {
  const lines = text.split("\n");
  const line = Math.min(Math.max(1, place.line ?? 1), lines.length);
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const content = lines[line - 1] ?? "";
  if (place.column === null)
    return { from: start + (content.length - content.trimStart().length), to: start + content.length };
  const column = Math.min(Math.max(1, place.column), content.length + 1);
  const word = /^[\w.]+|^[^\w\s]+/.exec(content.slice(column - 1))?.[0].length ?? 1;
  return { from: start + column - 1, to: Math.min(start + content.length, start + column - 1 + word) };
}
