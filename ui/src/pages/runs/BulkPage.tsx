/** An action on many runs: how far it is, and which runs it was refused for. */
import { Link, useParams } from "@tanstack/react-router";
import { api, type Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { Page } from "../../components/Page";
import { ProgressBar } from "../../components/ProgressBar";
import { StateBadge } from "../../components/StateBadge";
import { QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { count, plural, shortId } from "../../lib/format";
import { useApi } from "../../lib/query";
import { Elapsed, Time } from "../../lib/time";

type BulkJob = Schemas["BulkJob"];

const TITLES: Record<string, string> = {
  cancel: "Cancel runs",
  pause: "Pause runs",
  resume: "Resume runs",
  retry: "Retry runs",
  rerun: "Rerun runs",
};

export default function BulkPage() {
  const { job } = useParams({ strict: false }) as { job: string };
  const query = useApi(
    ["bulk", job],
    (signal) => api.GET("/api/v1/bulk/{job}", { params: { path: { job } }, signal }),
    { every: (data) => (data && data.state !== "running" ? false : 1000) },
  );
  const settled = query.data !== undefined && query.data.state !== "running";
  return (
    <Page
      title={query.data ? (TITLES[query.data.verb] ?? query.data.verb) : "Bulk action"}
      subtitle={query.data && <Subtitle job={query.data} />}
    >
      <QueryState query={query}>{(data) => <Progress job={data} settled={settled} />}</QueryState>
    </Page>
  );
}

function Subtitle({ job }: { job: BulkJob }) {
  return (
    <>
      started by {job.by} <Time at={job.created_at} />
    </>
  );
}

function Progress({ job, settled }: { job: BulkJob; settled: boolean }) {
  const good = job.done - job.failed;
  return (
    <>
      <section
        aria-label="Progress"
        className="flex flex-col gap-3 rounded-lg border border-line bg-surface px-4 py-4"
      >
        <div className="flex items-center gap-4 text-[13px]">
          <StateBadge state={job.state} />
          <span role="status">
            {settled ? `${plural(good, "run")} changed` : `${count(job.done)} of ${count(job.total)}`}
            {job.failed > 0 && (
              <span className="text-failed"> · refused for {count(job.failed)}</span>
            )}
          </span>
          <Elapsed
            from={job.created_at}
            to={job.finished_at}
            className="ml-auto tabular-nums text-muted"
          />
        </div>
        <ProgressBar
          hideText
          progress={{
            total: Math.max(job.total, job.done),
            done: good,
            failed: job.failed,
            skipped: 0,
            open: Math.max(0, job.total - job.done),
          }}
        />
        {settled && (
          <Link to="/runs" className="self-start text-[13px] text-accent hover:underline">
            Back to the runs
          </Link>
        )}
      </section>
      {job.failures.length > 0 && <Failures job={job} />}
    </>
  );
}

function Failures({ job }: { job: BulkJob }) {
  return (
    <Card title={`Refused (${count(job.failed)})`}>
      <Table
        caption="Runs that the action was refused for"
        className="max-h-[60vh] !rounded-t-none !border-0"
        rows={job.failures}
        rowKey={(failure) => failure.run}
        columns={[
          {
            key: "run",
            head: "Run",
            className: "w-36",
            cell: (failure) => (
              <Link
                to="/runs/$run"
                params={{ run: failure.run }}
                title={failure.run}
                className="rounded font-mono text-xs hover:underline"
              >
                {shortId(failure.run)}
              </Link>
            ),
          },
          {
            key: "code",
            head: "Code",
            className: "w-56",
            cell: (failure) => <code className="font-mono text-xs">{failure.code}</code>,
          },
          { key: "why", head: "Why", cell: (failure) => failure.message },
        ]}
      />
    </Card>
  );
}
