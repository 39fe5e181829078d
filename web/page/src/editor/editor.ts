/**
 * CodeMirror, loaded when a text is first shown. It stands in a shadow root: there it brings its styles as
 * constructed sheets, which the content security policy allows; in the page it would need style elements.
 */

import {
  acceptCompletion,
  autocompletion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { sql } from "@codemirror/lang-sql";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { span, type Place } from "./places.ts";

export interface EditorOptions {
  readonly parent: HTMLElement;
  readonly text: string;
  readonly language: "yaml" | "sql";
  readonly label: string;
  readonly readOnly: boolean;
  readonly words: () => readonly { label: string; detail: string }[];
  readonly changed: (text: string) => void;
}

export interface Editor {
  setText(text: string): void;
  mark(places: readonly Place[]): void;
  destroy(): void;
}

const theme = EditorView.theme({
  "&": { fontSize: "12.5px", backgroundColor: "var(--card)", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--ink)" },
  ".cm-gutters": {
    backgroundColor: "var(--panel)",
    color: "var(--quiet)",
    borderRight: "1px solid var(--faint)",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--group)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--hover)",
  },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--edge)" },
  ".cm-scroller": { overflow: "auto", maxHeight: "var(--most, 420px)" },
});

// The colours that come with the editor are too dark for the dark theme.
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.definition(tags.propertyName), tags.propertyName], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--quiet)" },
]);

function completions(words: EditorOptions["words"]): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    const word = context.matchBefore(/\w*/);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    return { from: word.from, options: words().map((each) => ({ ...each, type: "variable" })) };
  };
}

/** What the browser has selected in the editor. Chromium tells it of a shadow root, others of the page. */
function selected(view: EditorView): AbstractRange | undefined {
  // The types of the browser do not know that a shadow root may have a selection.
  const root = view.root as Partial<Pick<Document, "getSelection">>;
  const selection = root.getSelection?.() ?? document.getSelection();
  const range = selection?.rangeCount ? selection.getRangeAt(0) : undefined;
  return range && view.contentDOM.contains(range.commonAncestorContainer) ? range : undefined;
}

/** What an input replaces: as the browser says, because the editor hears of a new selection a moment later. */
function replaced(event: InputEvent, view: EditorView): { from: number; to: number } {
  const range = [event.getTargetRanges()[0], selected(view)].find((each) => each && !each.collapsed);
  if (!range) return view.state.selection.main;
  return {
    from: view.posAtDOM(range.startContainer, range.startOffset),
    to: view.posAtDOM(range.endContainer, range.endOffset),
  };
}

// Typing over a selection: the browser would keep the style of what it replaces in a style attribute, which the
// policy forbids. So the text is replaced here. The same where nothing may be typed: it would be put in first.
const typedOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const plain = event.inputType === "insertText" && event.data !== null && !view.composing;
    if (!plain) return false;
    if (view.state.readOnly) {
      event.preventDefault();
      return true;
    }
    const { from, to } = replaced(event, view);
    if (from === to) return false;
    event.preventDefault();
    const insert = event.data ?? "";
    view.dispatch({
      changes: { from, to, insert },
      selection: { anchor: from + insert.length },
      userEvent: "input.type",
      scrollIntoView: true,
    });
    return true;
  },
});

export function open(options: EditorOptions): Editor {
  const root = options.parent.shadowRoot ?? options.parent.attachShadow({ mode: "open" });
  let own = false;
  const view = new EditorView({
    root,
    parent: root as unknown as HTMLElement,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        basicSetup,
        options.language === "yaml" ? yaml() : sql(),
        autocompletion({ override: [completions(options.words)] }),
        Prec.highest(keymap.of([{ key: "Tab", run: acceptCompletion }])),
        lintGutter(),
        theme,
        typedOver,
        syntaxHighlighting(colours),
        EditorView.contentAttributes.of({ "aria-label": options.label }),
        EditorState.readOnly.of(options.readOnly),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !own) options.changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  view.scrollDOM.tabIndex = 0; // a text that scrolls can be reached with the keyboard
  return {
    setText: (text) => {
      const old = view.state.doc.toString();
      if (text === old) return;
      own = true;
      view.dispatch({ changes: { from: 0, to: old.length, insert: text } });
      own = false;
    },
    mark: (places) => {
      const text = view.state.doc.toString();
      const found = places.map((place) => ({
        ...span(text, place),
        severity: "error" as const,
        message: place.text,
      }));
      view.dispatch(setDiagnostics(view.state, found));
    },
    destroy: () => view.destroy(),
  };
}
