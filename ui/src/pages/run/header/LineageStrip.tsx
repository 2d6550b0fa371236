/** What the run came from and what came from it. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { StateBadge } from "../../../components/StateBadge";
import { plural, shortId } from "../../../lib/format";
import { type RunLine, useLineage } from "../queries";

const MOST = 4;

export function LineageStrip({ run }: { run: string }) {
  const { data } = useLineage(run);
  if (!data || (!data.parent && !data.origin && !data.forks.length && !data.children.length)) {
    return null;
  }
  return (
    <section
      aria-label="Lineage"
      className="mx-6 mt-2 flex flex-wrap items-center gap-x-5 gap-y-1 text-xs text-muted"
    >
      {data.parent && (
        <Part name="called by">
          <RunRef run={data.parent} />
        </Part>
      )}
      {data.origin && (
        <Part name="made from">
          <RunRef run={data.origin} />
        </Part>
      )}
      <Runs name="forks" runs={data.forks} />
      <Runs name="called" runs={data.children} workflow />
    </section>
  );
}

function Runs({ name, runs, workflow }: { name: string; runs: RunLine[]; workflow?: boolean }) {
  if (runs.length === 0) return null;
  return (
    <Part name={name}>
      {runs.slice(0, MOST).map((one) => (
        <RunRef key={one.id} run={one} workflow={workflow} />
      ))}
      {runs.length > MOST && <span>and {plural(runs.length - MOST, "more run", "more runs")}</span>}
    </Part>
  );
}

function Part({ name, children }: { name: string; children: ReactNode }) {
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      {name}
      {children}
    </span>
  );
}

function RunRef({ run, workflow }: { run: RunLine; workflow?: boolean }) {
  return (
    <Link
      to="/runs/$run"
      params={{ run: run.id }}
      search={{}}
      title={`${run.workflow} ${run.id}`}
      className="inline-flex items-center gap-1 rounded border border-line bg-surface px-1.5 py-px hover:border-faint"
    >
      {workflow && <span className="max-w-40 truncate text-text">{run.workflow}</span>}
      <span className="font-mono text-text">{shortId(run.id)}</span>
      <StateBadge state={run.state} size="sm" />
    </Link>
  );
}
