/** What a run is, how it is, and what can be done with it. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { CopyButton } from "../../../components/CopyButton";
import { ProgressBar } from "../../../components/ProgressBar";
import { StateBadge } from "../../../components/StateBadge";
import { count, money, shortId } from "../../../lib/format";
import { Elapsed, Time } from "../../../lib/time";
import type { Ask } from "../actions/verbs";
import type { Run, Summary } from "../queries";
import { RunActions } from "./RunActions";
import { TriggerLink } from "./TriggerLink";

export function RunHeader({
  run,
  summary,
  onAsk,
}: {
  run: Run;
  summary: Summary | undefined;
  onAsk: (ask: Ask) => void;
}) {
  return (
    <header className="flex flex-col gap-2 px-6 pt-4">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2">
        <div className="flex min-h-8 min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="break-all text-xl font-semibold tracking-tight">{run.workflow}</h1>
          <span className="flex items-center gap-0.5">
            <span className="font-mono text-xs text-muted" title={run.id}>
              {shortId(run.id)}
            </span>
            <CopyButton text={run.id} label="Copy the id of the run" className="!h-5 !w-5" />
          </span>
          <StateBadge state={run.state} />
        </div>
        <RunActions run={run} onAsk={onAsk} />
      </div>
      <div className="flex flex-wrap items-center gap-x-5 gap-y-1 text-[13px]">
        <Facts run={run} summary={summary} />
      </div>
    </header>
  );
}

function Facts({ run, summary }: { run: Run; summary: Summary | undefined }) {
  const progress = summary?.progress ?? run.progress;
  const waiting = (summary?.states.waiting ?? 0) + (summary?.states.needs_you ?? 0);
  return (
    <>
      <span className="font-medium tabular-nums">
        <Elapsed from={run.created_at} to={run.finished_at} />
      </span>
      <span className="[&_[role=progressbar]]:min-w-20">
        <ProgressBar progress={progress} alone />
      </span>
      {waiting > 0 && <span className="text-waiting">{count(waiting)} waiting</span>}
      {run.cost_usd !== null && (
        <Fact name="cost">
          <Link to="/cost" search={{ run: run.id }} className="tabular-nums hover:underline">
            {money(run.cost_usd)}
          </Link>
        </Fact>
      )}
      <Fact name="started">
        <Time at={run.created_at} />
      </Fact>
      <Fact name="by">
        <TriggerLink trigger={run.trigger} />
      </Fact>
      <Fact name="program">
        <Link
          to="/flows/$program/$workflow"
          params={{ program: run.program, workflow: run.workflow }}
          search={{}}
          title={run.program}
          className="font-mono text-xs text-accent hover:underline"
        >
          {shortHash(run.program)}
        </Link>
      </Fact>
      {run.key !== null && <Fact name="key">{run.key}</Fact>}
      {Object.entries(run.labels)
        // those of the system say what started it, as `by` does
        .filter(([name]) => !name.startsWith("afl."))
        .map(([name, value]) => (
          <Label key={name} name={name} value={value} />
        ))}
    </>
  );
}

/** Hashes begin with their algorithm; what tells them apart is behind it. */
function shortHash(hash: string): string {
  return hash.slice(hash.indexOf(":") + 1).slice(0, 8);
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <span className="inline-flex items-baseline gap-1.5">
      <span className="text-xs text-muted">{name}</span>
      {children}
    </span>
  );
}

function Label({ name, value }: { name: string; value: string }) {
  return (
    <Link
      to="/runs"
      search={{ label: [`${name}=${value}`] }}
      title="Runs with this label"
      className="max-w-56 truncate rounded border border-line bg-surface px-1.5 text-xs text-muted hover:text-text"
    >
      {name}={value}
    </Link>
  );
}
