/** One line of a log. */
import clsx from "clsx";
import { memo } from "react";
import type { LogLine } from "../queries";
import { lastPart } from "../rows/path";
import { pieces } from "./ansi";

const LEVELS: Record<string, string> = {
  error: "text-failed",
  critical: "text-failed",
  warning: "text-waiting",
  debug: "text-muted",
};

const clock = (at: string) => {
  const time = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const ms = String(time.getMilliseconds()).padStart(3, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${ms}`;
};

export const LogRow = memo(function LogRow({
  line,
  wrap,
  dense,
  onStep,
}: {
  line: LogLine;
  wrap: boolean;
  dense: boolean;
  onStep?: (path: string) => void;
}) {
  if (line.gap !== null) return <Gap line={line} />;
  return (
    <div className={clsx("flex gap-3 px-4 font-mono text-xs leading-5", !wrap && "w-max min-w-full")}>
      <time className="shrink-0 text-muted" dateTime={line.at} title={line.at}>
        {clock(line.at)}
      </time>
      {!dense && (
        <span className={clsx("w-14 shrink-0", LEVELS[line.level ?? ""] ?? "text-muted")}>
          {line.level ?? line.stream}
        </span>
      )}
      {!dense && (
        <button
          tabIndex={-1}
          className="w-36 shrink-0 truncate text-left text-muted hover:text-accent hover:underline"
          title={`${line.step}, attempt ${line.attempt}`}
          onClick={() => onStep?.(line.step)}
        >
          {lastPart(line.step) || "workflow"}
        </button>
      )}
      <span
        className={clsx(
          wrap ? "min-w-0 whitespace-pre-wrap break-words" : "whitespace-pre",
          // where there is no room for the level, its colour says it
          dense && LEVELS[line.level ?? ""],
        )}
      >
        {pieces(line.text).map((piece, at) => (
          <span key={at} className={piece.className} style={piece.style}>
            {piece.text}
          </span>
        ))}
      </span>
    </div>
  );
});

function Gap({ line }: { line: LogLine }) {
  return (
    <div className="flex items-center gap-3 px-4 text-xs leading-5 text-waiting">
      <span aria-hidden className="h-px w-8 bg-waiting/50" />
      <span>{line.text}</span>
      <span aria-hidden className="h-px flex-1 bg-waiting/50" />
    </div>
  );
}
