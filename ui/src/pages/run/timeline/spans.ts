/** What a row was doing when: the parts of its bar. */
import type { Row, Step } from "../queries";

export type Part = "queued" | "running" | "waiting" | "retry" | "failed";

export interface BarPart {
  part: Part;
  from: number;
  to: number;
}

const WAITS = new Set(["waiting", "needs_you"]);
const time = (text: string | null | undefined) => (text ? Date.parse(text) : null);

/** The bar of a row, from what rows know. */
export function rowParts(row: Row, now: number): BarPart[] {
  const created = time(row.created_at) ?? now;
  const started = time(row.started_at);
  const end = Math.max(time(row.ended_at) ?? now, created);
  if (row.state === "skipped" || row.why_code === "upstream") return [];
  const waits = WAITS.has(row.state);
  if (started === null) {
    const part = waits ? "waiting" : row.ended_at ? "running" : "queued";
    return [{ part, from: created, to: end }];
  }
  const parts: BarPart[] = [];
  if (started > created) parts.push({ part: "queued", from: created, to: started });
  const part = waits ? "waiting" : row.state === "failed" ? "failed" : "running";
  parts.push({ part, from: Math.min(started, end), to: end });
  return parts;
}

/** The bar of a step whose attempts are known: what is between two of them is a wait for a retry. */
export function stepParts(step: Step, now: number): BarPart[] {
  const tries = step.attempts.filter((one) => one.started_at !== null);
  if (tries.length === 0) return rowParts(step.row, now);
  const parts: BarPart[] = [];
  let until = time(step.row.created_at) ?? now;
  tries.forEach((one, at) => {
    const from = time(one.started_at) ?? until;
    const to = time(one.ended_at) ?? now;
    if (from > until) parts.push({ part: at === 0 ? "queued" : "retry", from: until, to: from });
    const bad = one.state === "failed" || one.state === "lost";
    parts.push({ part: one.state === "waiting" ? "waiting" : bad ? "failed" : "running", from, to });
    until = Math.max(until, to);
  });
  const end = time(step.row.ended_at) ?? now;
  if (end > until && !step.row.ended_at) parts.push({ part: "retry", from: until, to: end });
  return parts;
}

export const PART_WORDS: Record<Part, string> = {
  queued: "queued",
  running: "running",
  waiting: "waiting",
  retry: "between attempts",
  failed: "failed attempt",
};

export const PART_STYLES: Record<Part, string> = {
  queued: "bg-line",
  running: "bg-running",
  waiting: "bg-waiting/60",
  retry: "bg-lost/50",
  failed: "bg-failed",
};
