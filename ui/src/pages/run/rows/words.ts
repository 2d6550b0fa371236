/** How rows are called on screen. */
import type { Row } from "../queries";
import { lastPart } from "./path";

const KINDS: Record<string, string> = {
  AndThen: "block",
  Block: "block",
  AndMap: "foreach",
  AndWhen: "when",
  AndCatch: "catch",
  AndScript: "script",
  Workflow: "workflow",
  YieldAssignment: "yield",
  SchemaInstantiation: "value",
  SysLog: "sys.log",
  SysAssert: "sys.assert",
};

export const kindWord = (kind: string) => KINDS[kind] ?? "step";

/** The name of a row: an iteration by its number, a clause by what it is. */
export function rowName(row: Pick<Row, "path" | "name" | "kind">): string {
  const last = lastPart(row.path);
  if (row.path === "") return row.name || "workflow";
  if (row.kind === "Block" && /^\d+$/.test(last)) return `#${last}`;
  if (/^\d+$/.test(last)) {
    return Number(last) === 0 ? kindWord(row.kind) : `${kindWord(row.kind)} ${Number(last) + 1}`;
  }
  return row.name || last;
}

/** Which of the ten words are something that a person may have to look at. */
export const PROBLEMS = ["failed", "dead_letter", "lost", "needs_you"];

/** The order in which states are shown, the most urgent first. */
export const STATES = [
  "failed",
  "dead_letter",
  "lost",
  "needs_you",
  "running",
  "waiting",
  "queued",
  "done",
  "skipped",
  "canceled",
];
