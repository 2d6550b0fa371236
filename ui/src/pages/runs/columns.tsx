/** The columns of the list of runs. Which of them are shown is kept in this browser. */
import { Link } from "@tanstack/react-router";
import { GitFork, Play } from "lucide-react";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { ProgressBar } from "../../components/ProgressBar";
import { StateBadge } from "../../components/StateBadge";
import { money, shortId } from "../../lib/format";
import { usePref } from "../../lib/prefs";
import { Elapsed, Time } from "../../lib/time";

export type RunLine = Schemas["RunLine"];

export interface RunColumn {
  key: string;
  head: string;
  /** In pixels; the one that grows takes what is left. */
  width: number;
  grow?: boolean;
  /** Left out first where there is no room, unless the reader has chosen it. */
  yields?: number;
  right?: boolean;
  /** Shown unless the reader has chosen otherwise. */
  usual?: boolean;
  cell: (run: RunLine) => ReactNode;
  /** For the download. */
  text: (run: RunLine) => string | number | null;
}

function Trigger({ trigger }: { trigger: string }) {
  const [kind, name] = [trigger.split(":", 1)[0], trigger.slice(trigger.indexOf(":") + 1)];
  if (kind === "run") {
    return (
      <Link
        to="/runs/$run"
        params={{ run: name }}
        title={`Called by run ${name}`}
        className="rounded hover:underline"
      >
        run <span className="font-mono text-xs">{shortId(name)}</span>
      </Link>
    );
  }
  if (kind === "schedule") return <Link to="/schedules" className="rounded hover:underline">{name}</Link>;
  return <>{trigger}</>;
}

function Labels({ labels }: { labels: Record<string, string> }) {
  const all = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  // those of the system say what started it, which has a column of its own
  const own = all.filter((label) => !label.startsWith("afl."));
  return (
    <span className="flex min-w-0 gap-1" title={all.join("\n")}>
      {own.map((label) => (
        <span
          key={label}
          className="min-w-6 truncate rounded bg-sunken px-1.5 text-xs leading-5 text-muted"
        >
          {label}
        </span>
      ))}
    </span>
  );
}

export const COLUMNS: RunColumn[] = [
  {
    key: "state",
    head: "State",
    width: 124,
    usual: true,
    cell: (run) => <StateBadge state={run.state} />,
    text: (run) => run.state,
  },
  {
    key: "workflow",
    head: "Flow",
    width: 138,
    grow: true,
    usual: true,
    cell: (run) => (
      <span className="flex min-w-0 items-center gap-1.5">
        <Link
          to="/runs/$run"
          params={{ run: run.id }}
          data-open={run.id}
          title={run.workflow}
          className="min-w-0 truncate rounded font-medium hover:underline"
        >
          {run.workflow}
        </Link>
        {run.forked_from && (
          <GitFork
            size={12}
            aria-label="Made from another run"
            className="shrink-0 text-faint"
          />
        )}
        {run.parent && (
          <Play size={11} aria-label="Called by another run" className="shrink-0 text-faint" />
        )}
      </span>
    ),
    text: (run) => run.workflow,
  },
  {
    key: "id",
    head: "Run",
    width: 120,
    usual: true,
    cell: (run) => (
      <span className="font-mono text-xs text-muted" title={run.id}>
        {shortId(run.id)}
      </span>
    ),
    text: (run) => run.id,
  },
  {
    key: "started",
    head: "Started",
    width: 88,
    right: true,
    usual: true,
    cell: (run) => <Time at={run.created_at} />,
    text: (run) => run.created_at,
  },
  {
    key: "duration",
    head: "Duration",
    width: 84,
    right: true,
    usual: true,
    cell: (run) => <Elapsed from={run.created_at} to={run.finished_at} />,
    text: (run) =>
      run.finished_at
        ? (new Date(run.finished_at).getTime() - new Date(run.created_at).getTime()) / 1000
        : null,
  },
  {
    key: "progress",
    head: "Steps",
    width: 176,
    usual: true,
    cell: (run) => <ProgressBar progress={run.progress} />,
    text: (run) => `${run.progress.done}/${run.progress.total}`,
  },
  {
    key: "cost",
    head: "Cost",
    width: 76,
    yields: 3,
    right: true,
    usual: true,
    cell: (run) => (run.cost_usd === null ? "–" : money(run.cost_usd)),
    text: (run) => run.cost_usd,
  },
  {
    key: "labels",
    head: "Labels",
    width: 186,
    yields: 2,
    usual: true,
    cell: (run) => <Labels labels={run.labels} />,
    text: (run) =>
      Object.entries(run.labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(" "),
  },
  {
    key: "trigger",
    head: "Trigger",
    width: 104,
    yields: 1,
    usual: true,
    cell: (run) => <Trigger trigger={run.trigger} />,
    text: (run) => run.trigger,
  },
  {
    key: "error",
    head: "Error",
    width: 220,
    cell: (run) =>
      run.error && (
        <span className="font-mono text-xs text-failed" title={run.error}>
          {run.error}
        </span>
      ),
    text: (run) => run.error,
  },
  {
    key: "key",
    head: "Key",
    width: 130,
    cell: (run) => <span title={run.key ?? undefined}>{run.key}</span>,
    text: (run) => run.key,
  },
  {
    key: "priority",
    head: "Priority",
    width: 76,
    right: true,
    cell: (run) => run.priority,
    text: (run) => run.priority,
  },
  {
    key: "program",
    head: "Program",
    width: 110,
    cell: (run) => (
      <span className="font-mono text-xs" title={run.program}>
        {run.program.slice(0, 10)}
      </span>
    ),
    text: (run) => run.program,
  },
  {
    key: "tenant",
    head: "Tenant",
    width: 96,
    cell: (run) => run.tenant,
    text: (run) => run.tenant,
  },
];

/** Null until the reader has chosen: then as many of the usual ones as there is room for. */
export function useColumns(): [string[] | null, (keys: string[]) => void] {
  return usePref<string[] | null>("runs.columns", null);
}

/** The width of the column with the boxes that select rows. */
export const BOX = 44;

/** Failed runs are looked at for their errors, whatever was chosen. */
export function shownColumns(
  chosen: string[] | null,
  state: string | undefined,
  room: number,
): RunColumn[] {
  const wanted = COLUMNS.filter(
    (column) =>
      (chosen ? chosen.includes(column.key) : column.usual) ||
      (column.key === "error" && state === "failed"),
  );
  if (chosen) return wanted;
  const width = () => wanted.reduce((sum, column) => sum + column.width, BOX);
  for (let rank = 1; rank <= 3 && width() > room; rank += 1) {
    const at = wanted.findIndex((column) => column.yields === rank);
    if (at >= 0) wanted.splice(at, 1);
  }
  return wanted;
}
