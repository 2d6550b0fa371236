/** Colours of terminals as colours of this page. Nothing of a log line becomes HTML. */
import Anser from "anser";
import type { CSSProperties } from "react";

export interface Piece {
  text: string;
  className: string;
  style?: CSSProperties;
}

const COLORS: Record<string, string> = {
  black: "text-muted",
  red: "text-failed",
  green: "text-done",
  yellow: "text-waiting",
  blue: "text-running",
  magenta: "text-needs-you",
  cyan: "text-accent",
  white: "text-text",
};
const LOOKS: Record<string, string> = {
  bold: "font-semibold",
  dim: "opacity-80",
  italic: "italic",
  underline: "underline",
  strikethrough: "line-through",
};
const ESCAPE = "\u001b";

export function pieces(line: string): Piece[] {
  if (!line.includes(ESCAPE)) return [{ text: line, className: "" }];
  return Anser.ansiToJson(line, { use_classes: true, remove_empty: true }).map((entry) => {
    const looks = (entry.decorations ?? []).map((one) => LOOKS[one] ?? "");
    const name = (entry.fg ?? "").replace(/^ansi-(bright-)?/, "");
    return {
      text: entry.content,
      className: [COLORS[name] ?? "", ...looks].filter(Boolean).join(" "),
      style: exact(entry.fg, entry.fg_truecolor),
    };
  });
}

/** Colours beyond the eight are taken as they are. */
function exact(name: string | null, rgb: string | null): CSSProperties | undefined {
  if (name === "ansi-truecolor" && rgb) return { color: `rgb(${rgb})` };
  const palette = /^ansi-palette-(\d+)$/.exec(name ?? "")?.[1];
  if (palette === undefined) return undefined;
  return { color: `rgb(${paletteColor(Number(palette)).join(", ")})` };
}

function paletteColor(number: number): [number, number, number] {
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return [grey, grey, grey];
  }
  const at = Math.max(number - 16, 0);
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40);
  return [level(Math.floor(at / 36)), level(Math.floor(at / 6) % 6), level(at % 6)];
}
