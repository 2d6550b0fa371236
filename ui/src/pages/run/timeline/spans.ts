/** What a row was doing when: the parts of its bar. The server tells only what is known. */
import { duration } from "../../../lib/format";
import type { Row } from "../queries";

export type Part = Row["parts"][number]["part"];

export interface BarPart {
  part: Part;
  from: number;
  to: number;
}

/** The parts in order; what goes on lasts until now. */
export function rowParts(row: Pick<Row, "parts">, now: number): BarPart[] {
  return row.parts.map((one) => {
    const from = Date.parse(one.start);
    return { part: one.part, from, to: Math.max(from, one.end === null ? now : Date.parse(one.end)) };
  });
}

/** The same in words, such as `queued 4.0s, running 12s`. */
export function partWords(parts: BarPart[]): string[] {
  return parts.map((one) => `${PART_WORDS[one.part]} ${duration(one.to - one.from)}`);
}

export const PART_WORDS: Record<Part, string> = {
  queued: "queued",
  running: "running",
  waiting: "waiting",
  failed: "failed attempt",
  lost: "lost with its worker",
  earlier: "earlier attempts",
  retry: "waits for a retry",
};

/** What the words leave out. */
export const PART_NOTES: Partial<Record<Part, string>> = {
  queued: "Nobody could take it, or nobody had taken it yet",
  running: "With a worker; the time in the queue for one is a part of it",
  failed: "The last attempt, with its time in the queue",
  earlier: "Attempts that were followed by another one, with the waits between them",
  retry: "Since the last failure, until it is tried again",
};

export const PART_STYLES: Record<Part, string> = {
  queued: "bg-queued/35",
  running: "bg-running",
  waiting: "bg-waiting/60",
  failed: "bg-failed",
  lost: "bg-lost",
  earlier: "bg-failed/40",
  retry: "hatched",
};
