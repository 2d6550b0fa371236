/** How many steps are in which state: a stacked bar, and the same in words. */
import clsx from "clsx";
import { stateInfo } from "../../../components/StateBadge";
import { count } from "../../../lib/format";
import { STATES } from "./words";

const FILLS: Record<string, string> = {
  queued: "bg-queued/35",
  waiting: "bg-waiting/70",
  needs_you: "bg-needs-you",
  running: "bg-running",
  done: "bg-done",
  failed: "bg-failed",
  skipped: "bg-skipped/50",
  canceled: "bg-canceled/70",
  lost: "bg-lost",
  dead_letter: "bg-dead-letter",
};

export type Tally = Record<string, number>;

export const totalOf = (tally: Tally) => Object.values(tally).reduce((sum, n) => sum + n, 0);

export function tallyWords(tally: Tally, most = Infinity): string {
  return STATES.filter((state) => tally[state])
    .slice(0, most)
    .map((state) => `${count(tally[state] ?? 0)} ${stateInfo(state).word.toLowerCase()}`)
    .join(", ");
}

export function TallyBar({ tally, className }: { tally: Tally; className?: string }) {
  const total = totalOf(tally);
  const words = tallyWords(tally) || "not started";
  return (
    <span
      role="img"
      aria-label={words}
      title={words}
      className={clsx("flex h-1.5 overflow-hidden rounded-full bg-sunken ring-1 ring-line", className)}
    >
      {STATES.filter((state) => tally[state]).map((state) => (
        <span
          key={state}
          className={clsx("h-full min-w-[2px]", FILLS[state])}
          style={{ flexGrow: tally[state], flexBasis: 0 }}
        />
      ))}
      {total === 0 && <span className="h-full flex-1" />}
    </span>
  );
}
