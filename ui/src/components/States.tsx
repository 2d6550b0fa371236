/** Loading, empty, filtered out, not permitted and unreachable are five different things. */
import type { UseQueryResult } from "@tanstack/react-query";
import { Filter, Inbox, LoaderCircle, Lock, type LucideIcon, TriangleAlert, Unplug } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { ApiError, type Problem } from "../api/client";
import { Button } from "./Button";
import { CopyButton } from "./CopyButton";
import { SignIn } from "./SignIn";

function Box({
  icon: Icon,
  title,
  children,
  role,
}: {
  icon: LucideIcon;
  title: ReactNode;
  children?: ReactNode;
  role?: "alert" | "status";
}) {
  return (
    <div
      role={role}
      className="flex flex-col items-center justify-center gap-2 rounded-lg border border-dashed border-line px-6 py-10 text-center"
    >
      <Icon aria-hidden size={22} className="text-faint" />
      <p className="font-medium">{title}</p>
      {children}
    </div>
  );
}

function Hint({ children }: { children: ReactNode }) {
  return <div className="max-w-prose text-[13px] text-muted">{children}</div>;
}

/** Shows nothing for the first moment: what comes at once needs no spinner. */
export function Loading({ label = "Loading" }: { label?: string }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div
      role="status"
      className="flex min-h-24 items-center justify-center gap-2 text-[13px] text-muted"
    >
      {late && (
        <>
          <LoaderCircle aria-hidden size={16} className="motion-safe:animate-spin" />
          {label}…
        </>
      )}
    </div>
  );
}

/** A line to type, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-1 rounded-md border border-line bg-sunken py-0.5 pl-2.5 pr-0.5 text-left">
      <code className="min-w-0 whitespace-pre-wrap break-words font-mono text-xs [overflow-wrap:anywhere]">{text}</code>
      <CopyButton text={text} label="Copy the command" />
    </span>
  );
}

export interface EmptyProps {
  title: ReactNode;
  /** What the thing is, and what creates it. */
  hint?: ReactNode;
  command?: string;
  /** A page of the documentation, as it is called in the repository: the dashboard links nowhere. */
  docs?: string;
  icon?: LucideIcon;
  action?: ReactNode;
}

export function Empty({ title, hint, command, docs, icon = Inbox, action }: EmptyProps) {
  return (
    <Box icon={icon} title={title}>
      {hint && <Hint>{hint}</Hint>}
      {command && <Command text={command} />}
      {action}
      {docs && (
        <p className="text-xs text-muted">
          More in <code className="font-mono">{docs}</code>
        </p>
      )}
    </Box>
  );
}

export function Filtered({ onClear }: { onClear: () => void }) {
  return (
    <Box icon={Filter} title="Nothing matches the filters">
      <Hint>There may be more without them.</Hint>
      <Button onClick={onClear}>Clear the filters</Button>
    </Box>
  );
}

export function Forbidden({ problem }: { problem: Problem | null }) {
  return (
    <Box icon={Lock} title="You may not see this" role="alert">
      <Hint>
        {problem?.detail}
        {problem?.hint && <> {problem.hint}</>}
      </Hint>
      {problem?.status === 401 && <SignIn />}
    </Box>
  );
}

export function Unreachable({ onRetry }: { onRetry: () => void }) {
  return (
    <Box icon={Unplug} title="The server cannot be reached" role="alert">
      <Hint>It may be stopped or restarting. This page tries again by itself.</Hint>
      <Button onClick={onRetry}>Try now</Button>
    </Box>
  );
}

/** What the server refused for another reason: its sentence, its code and what to do. */
export function Refused({ problem, onRetry }: { problem: Problem | null; onRetry?: () => void }) {
  return (
    <Box icon={TriangleAlert} title={problem?.title ?? "This did not work"} role="alert">
      <Hint>
        <span className="break-words">{problem?.detail}</span>
        {problem?.hint && <span className="mt-1 block">{problem.hint}</span>}
        {problem?.code && <code className="mt-1 block font-mono text-xs">{problem.code}</code>}
      </Hint>
      {onRetry && <Button onClick={onRetry}>Try again</Button>}
    </Box>
  );
}

export interface QueryStateProps<T> {
  query: Pick<UseQueryResult<T, Error>, "data" | "error" | "isPending"> & {
    refetch: () => unknown;
  };
  /** What to show when the answer has nothing in it; a list or a page of a list is looked into. */
  empty?: ReactNode;
  /** Whether a filter is on, and how to clear it: then empty means "filtered out". */
  filtered?: { active: boolean; onClear: () => void };
  label?: string;
  children: (data: T) => ReactNode;
}

export function QueryState<T>({
  query,
  empty,
  filtered,
  label,
  children,
}: QueryStateProps<T>) {
  if (query.data !== undefined) {
    if (isEmpty(query.data)) {
      if (filtered?.active) return <Filtered onClear={filtered.onClear} />;
      if (empty !== undefined) return <>{empty}</>;
    }
    return <>{children(query.data)}</>;
  }
  if (query.error) {
    const retry = () => void query.refetch();
    if (!(query.error instanceof ApiError)) {
      return <Refused problem={problemOf(query.error)} onRetry={retry} />;
    }
    if (query.error.unreachable) return <Waiting onRetry={retry} />;
    if (query.error.forbidden) return <Forbidden problem={query.error.problem} />;
    return <Refused problem={query.error.problem} onRetry={retry} />;
  }
  return <Loading label={label} />;
}

function problemOf(error: Error): Problem {
  return {
    type: "about:blank",
    title: "This page has a mistake",
    status: 0,
    detail: error.message,
    code: "",
    errors: [],
  };
}

/** Tries again by itself, as it says. */
function Waiting({ onRetry }: { onRetry: () => void }) {
  useEffect(() => {
    const timer = setInterval(onRetry, 4000);
    return () => clearInterval(timer);
  });
  return <Unreachable onRetry={onRetry} />;
}

function isEmpty(data: unknown): boolean {
  if (Array.isArray(data)) return data.length === 0;
  const items = (data as { items?: unknown } | null)?.items;
  return Array.isArray(items) && items.length === 0;
}
