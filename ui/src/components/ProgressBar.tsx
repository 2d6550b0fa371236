import clsx from "clsx";
import type { Schemas } from "../api/client";
import { count } from "../lib/format";

/** How far a run is: done, skipped and failed as parts of all, and the same in words. */
export function ProgressBar({
  progress,
  hideText,
  of = "steps",
  alone,
}: {
  progress: Schemas["Progress"];
  hideText?: boolean;
  /** What is counted. */
  of?: string;
  /** Not one of a column, whose numbers begin at the same place. */
  alone?: boolean;
}) {
  const { total, done, failed, skipped } = progress;
  const text = `${count(done)}/${count(total)}`;
  const words = [
    `${count(done)} of ${count(total)} ${of} done`,
    failed ? `${count(failed)} failed` : "",
    skipped ? `${count(skipped)} skipped` : "",
  ]
    .filter(Boolean)
    .join(", ");
  const width = (part: number) => ({ width: `${(part / total) * 100}%` });
  if (total === 0) return <span className="text-muted">–</span>;
  return (
    <span className="flex min-w-0 items-center gap-2" title={words}>
      <span
        role="progressbar"
        aria-label="Progress"
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={done + failed + skipped}
        aria-valuetext={words}
        className="flex h-1.5 min-w-8 flex-1 overflow-hidden rounded-full bg-sunken ring-1 ring-line"
      >
        <span className="h-full bg-done" style={width(done)} />
        <span className="h-full bg-skipped" style={width(skipped)} />
        <span className="h-full bg-failed" style={width(failed)} />
      </span>
      {!hideText && (
        <span
          aria-hidden
          className={clsx("shrink-0 text-xs tabular-nums text-muted", !alone && "min-w-20")}
        >
          {text}
          {failed > 0 && <span className="text-failed"> · {count(failed)} failed</span>}
        </span>
      )}
    </span>
  );
}
