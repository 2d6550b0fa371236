/** Tool calls have numbers, and their answers have the number of the call. */
import type { Transcript } from "../queries";

export type TranscriptLine = Transcript["lines"][number];

export interface Entry {
  line: TranscriptLine;
  number: number | null;
}

/** An answer belongs to the first call of its tool that has none yet. */
export function numbered(lines: TranscriptLine[]): Entry[] {
  const open: { tool: string | null; number: number }[] = [];
  let next = 1;
  return lines.map((line) => {
    if (line.kind === "tool_call") {
      const number = next++;
      open.push({ tool: line.tool, number });
      return { line, number };
    }
    if (line.kind !== "tool_result") return { line, number: null };
    const at = open.findIndex((call) => call.tool === line.tool);
    const [call] = at < 0 ? [] : open.splice(at, 1);
    return { line, number: call?.number ?? null };
  });
}

/** Arguments as the model wrote them: mostly JSON, but nothing makes it so. */
export function argumentsOf(line: TranscriptLine): unknown {
  if (line.arguments === null) return undefined;
  try {
    return JSON.parse(line.arguments) as unknown;
  } catch {
    return line.arguments;
  }
}
