/** AFL for CodeMirror: words, strings, comments, policies. Enough to read by. */
import { StreamLanguage, type StringStream } from "@codemirror/language";

const KEYWORDS = new Set(
  ("namespace use schema enum facet event workflow with andThen yield foreach in when case catch after prompt script " +
    "schedule limit mixin implicit if else and or not for").split(" "),
);
const ATOMS = new Set(["true", "false", "null"]);

interface State {
  comment: boolean;
  text: boolean;
}

export const aflLanguage = StreamLanguage.define<State>({
  name: "afl",
  startState: () => ({ comment: false, text: false }),
  token(stream, state) {
    if (state.comment) return inComment(stream, state);
    if (state.text) return inText(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.comment = true;
      return inComment(stream, state);
    }
    if (stream.match('"""')) {
      state.text = true;
      return inText(stream, state);
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^\d+(?:\.\d+)?(?:ms|s|m|h|d|w)?\b/)) return "number";
    if (stream.match(/^\$\.?/)) return "variableName.special";
    const word = stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null;
    if (word) {
      if (KEYWORDS.has(word[0])) return "keyword";
      if (ATOMS.has(word[0])) return "atom";
      return /^[A-Z]/.test(word[0]) ? "typeName" : "variableName";
    }
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } } },
});

function inComment(stream: StringStream, state: State): string {
  while (!stream.eol()) {
    if (stream.match("*/")) {
      state.comment = false;
      break;
    }
    stream.next();
  }
  return "comment";
}

function inText(stream: StringStream, state: State): string {
  while (!stream.eol()) {
    if (stream.match('"""')) {
      state.text = false;
      break;
    }
    stream.next();
  }
  return "string";
}
