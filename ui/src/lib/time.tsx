/** Times on a page: one clock for all of them, and one setting for how they are shown. */
import { useSyncExternalStore } from "react";
import { ago, dateTime, duration } from "./format";
import { usePref } from "./prefs";

export type TimeStyle = "relative" | "local" | "utc";

let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  now = Date.now();
  timer ??= setInterval(() => {
    now = Date.now();
    listeners.forEach((each) => each());
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time, renewed each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

export function useTimeStyle(): [TimeStyle, (style: TimeStyle) => void] {
  return usePref<TimeStyle>("time", "relative");
}

function exact(at: string): string {
  return `${dateTime(at)} local · ${dateTime(at, "utc")}`;
}

/** A point in time; its title has the exact time in both zones. */
export function Time({ at, className }: { at: string | null | undefined; className?: string }) {
  const [style] = useTimeStyle();
  if (!at) return <span className={className}>–</span>;
  return (
    <time dateTime={at} title={exact(at)} className={className}>
      {style === "relative" ? <Ago at={at} /> : dateTime(at, style)}
    </time>
  );
}

function Ago({ at }: { at: string }) {
  return <>{ago(at, useNow())}</>;
}

/** How long something took, or has taken so far. */
export function Elapsed({
  from,
  to,
  className,
}: {
  from: string | null | undefined;
  to?: string | null;
  className?: string;
}) {
  if (!from) return <span className={className}>–</span>;
  const start = new Date(from).getTime();
  return (
    <span className={className} title={to ? `until ${exact(to)}` : `since ${exact(from)}`}>
      {to ? duration(new Date(to).getTime() - start) : <Ticking since={start} />}
    </span>
  );
}

function Ticking({ since }: { since: number }) {
  const passed = Math.max(0, useNow() - since);
  return <>{duration(passed < 60_000 ? Math.floor(passed / 1000) * 1000 : passed)}</>;
}
