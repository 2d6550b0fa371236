/** A value as people read it: folded where it is large, copied with one click. */
import clsx from "clsx";
import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { bytes as sized, count } from "../lib/format";
import { Button } from "./Button";
import { CopyButton } from "./CopyButton";

/** Longer strings and lists are folded. */
const LONG_TEXT = 300;
const LONG_LIST = 50;
const OPEN_DEPTH = 3;

export function JsonView({
  value,
  truncated,
  bytes,
  onLoadFull,
  label = "Value",
}: {
  value: unknown;
  /** Whether `value` is only the beginning of the text of the whole. */
  truncated?: boolean;
  bytes?: number;
  onLoadFull?: () => void;
  label?: string;
}) {
  const plain = truncated && typeof value === "string";
  return (
    <div className="group relative min-w-0 rounded-md border border-line bg-sunken">
      <div className="absolute right-1 top-1 z-10 flex items-center gap-1">
        <CopyButton
          text={() => (plain ? value : (JSON.stringify(value, null, 2) ?? "null"))}
          label={`Copy ${label.toLowerCase()}`}
        />
      </div>
      <div
        tabIndex={0}
        role="region"
        aria-label={label}
        className="max-h-[32rem] overflow-auto py-2 pl-3 pr-10 font-mono text-xs leading-5 [overflow-wrap:anywhere]"
      >
        {plain ? (
          <span className="whitespace-pre-wrap">{value}…</span>
        ) : (
          <Node value={value} depth={0} />
        )}
      </div>
      {truncated && (
        <div className="flex items-center justify-between gap-2 border-t border-line px-3 py-1 text-xs text-muted">
          <span>Only the beginning{bytes !== undefined && ` of ${sized(bytes)}`}</span>
          {onLoadFull && (
            <Button variant="ghost" size="sm" onClick={onLoadFull}>
              Load all of it
            </Button>
          )}
        </div>
      )}
    </div>
  );
}

function Node({ value, depth, tail = "" }: { value: unknown; depth: number; tail?: string }) {
  if (typeof value === "string") return <Text value={value} tail={tail} />;
  if (value === null || typeof value !== "object") {
    return (
      <>
        <span className={value === null ? "text-muted" : "text-running"}>{String(value)}</span>
        {tail}
      </>
    );
  }
  return <Group value={value} depth={depth} tail={tail} />;
}

function Text({ value, tail }: { value: string; tail: string }) {
  const [open, setOpen] = useState(false);
  const long = value.length > LONG_TEXT;
  const shown = long && !open ? value.slice(0, LONG_TEXT) : value;
  const quoted = JSON.stringify(shown);
  return (
    <>
      <span className="whitespace-pre-wrap text-done">
        {long && !open ? `${quoted.slice(0, -1)}…"` : open ? `"${shown}"` : quoted}
      </span>
      {long && (
        <button
          type="button"
          onClick={() => setOpen(!open)}
          className="ml-1 text-accent underline underline-offset-2"
        >
          {open ? "less" : `${count(value.length - LONG_TEXT)} more characters`}
        </button>
      )}
      {tail}
    </>
  );
}

function Group({ value, depth, tail }: { value: object; depth: number; tail: string }) {
  const list = Array.isArray(value);
  const entries: [string | null, unknown][] = list
    ? value.map((item) => [null, item])
    : Object.entries(value);
  const [open, setOpen] = useState(depth < OPEN_DEPTH && (depth === 0 || entries.length <= 20));
  const [shown, setShown] = useState(LONG_LIST);
  const [before, after] = list ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return <>{`${before}${after}${tail}`}</>;
  return (
    <>
      <button
        type="button"
        aria-expanded={open}
        aria-label={`${entries.length} ${list ? "items" : "fields"}`}
        onClick={() => setOpen(!open)}
        className="-ml-0.5 inline-flex items-center text-muted hover:text-text"
      >
        <ChevronRight aria-hidden size={12} className={clsx(open && "rotate-90")} />
        {before}
        {!open && ` ${count(entries.length)} ${list ? "items" : "fields"} ${after}`}
      </button>
      {open && (
        <>
          <ul className="border-l border-line pl-4">
            {entries.slice(0, shown).map(([name, item], index) => (
              <li key={name ?? index}>
                {name !== null && <span className="text-muted">{name}: </span>}
                <Node value={item} depth={depth + 1} />
              </li>
            ))}
            {entries.length > shown && (
              <li>
                <button
                  type="button"
                  className="text-accent underline underline-offset-2"
                  onClick={() => setShown(shown + 200)}
                >
                  {count(entries.length - shown)} more
                </button>
              </li>
            )}
          </ul>
          <span className="text-muted">{after}</span>
        </>
      )}
      {tail}
    </>
  );
}
