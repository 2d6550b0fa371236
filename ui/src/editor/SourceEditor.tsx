/** An editor for sources with the compiler's diagnostics in the margin. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic as Mark, lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { type Schemas } from "../api/client";
import { aflLanguage } from "./afl";

type Diagnostic = Schemas["Diagnostic"];
/** Lines and columns count from 1. */
export type Place = { line: number; column: number };

/** What the server lets the style sheets of the editor in by. */
const NONCE = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
const LOOK = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "13px" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "20px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--sunken)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft) !important",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
  },
  ".cm-diagnostic": { padding: "6px 10px" },
});
const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)" },
  { tag: tags.string, color: "var(--done)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.number, tags.atom], color: "var(--waiting)" },
  { tag: tags.typeName, color: "var(--needs-you)" },
  { tag: tags.special(tags.variableName), color: "var(--lost)" },
]);

export default function SourceEditor({
  value,
  onChange,
  diagnostics = [],
  readOnly = false,
  place: at,
  label,
}: {
  value: string;
  onChange?: (text: string) => void;
  diagnostics?: Diagnostic[];
  readOnly?: boolean;
  /** Where to put the cursor; each new one moves it, also to the same place again. */
  place?: Place;
  label: string;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  useEffect(() => {
    const made = new EditorView({
      parent: host.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          lintGutter(),
          history(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          aflLanguage,
          syntaxHighlighting(COLOURS),
          LOOK,
          EditorView.cspNonce.of(NONCE),
          keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
          EditorState.readOnly.of(readOnly),
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
    // the document is the editor's own; a new value from outside is taken below
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [readOnly, label]);
  useEffect(() => {
    const now = view.current;
    if (now && now.state.doc.toString() !== value) {
      now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value } });
    }
  }, [value]);
  useEffect(() => {
    const now = view.current;
    if (now) now.dispatch(setDiagnostics(now.state, diagnostics.map((one) => marked(now.state, one))));
  }, [diagnostics, value]);
  useEffect(() => {
    const now = view.current;
    if (!now || !at) return;
    now.dispatch({ selection: { anchor: offset(now.state, at.line, at.column) }, scrollIntoView: true });
    now.focus();
  }, [at]);
  return <div ref={host} className="h-full min-h-0 overflow-hidden" />;
}

function marked(state: EditorState, found: Diagnostic): Mark {
  const from = offset(state, found.line, found.column);
  return {
    from,
    to: Math.max(from, offset(state, found.end_line, found.end_column)),
    severity: found.severity === "hint" ? "info" : found.severity,
    message: `${found.code}: ${found.message}${found.help ? `\n${found.help}` : ""}`,
  };
}

function offset(state: EditorState, line: number, column: number): number {
  const at = state.doc.line(Math.min(Math.max(1, line), state.doc.lines));
  return Math.min(at.from + Math.max(0, column - 1), at.to);
}
