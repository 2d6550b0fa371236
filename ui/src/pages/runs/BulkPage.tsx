/** An action on many runs: how far it is, and which runs it was refused for. */
import { Link, useParams } from "@tanstack/react-router";
import { api, type Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { count, plural, shortId } from "../../lib/format";
import { useApi } from "../../lib/query";
import { Elapsed, Time } from "../../lib/time";
import { JobBar } from "./BulkListPage";
import { bulkAsked, bulkSearch, bulkTitle } from "./bulkWords";

type BulkJob = Schemas["BulkJob"];

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
      title={query.data ? bulkTitle(query.data.verb) : "Bulk action"}
      subtitle={query.data && <Subtitle job={query.data} />}
    >
      <QueryState query={query}>{(data) => <Progress job={data} settled={settled} />}</QueryState>
    </Page>
  );
}

function Subtitle({ job }: { job: BulkJob }) {
  return (
    <>
      {bulkAsked(job)} · by {job.by}, <Time at={job.created_at} />
      {job.reason && ` · ${job.reason}`}
    </>
  );
}

function Progress({ job, settled }: { job: BulkJob; settled: boolean }) {
  return (
    <>
      <section
        aria-label="Progress"
        className="flex flex-col gap-3 rounded-lg border border-line bg-surface px-4 py-4"
      >
        <div className="flex items-center gap-4 text-[13px]">
          <StateBadge state={job.state} />
          <span role="status">
            {settled
              ? `${plural(job.done, "run")} changed`
              : `${count(job.done + job.failed)} of ${count(job.total)}`}
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
        <JobBar job={job} />
        {job.filter && (
          <Link
            to="/runs"
            search={bulkSearch(job.filter)}
            className="self-start rounded text-[13px] text-accent hover:underline"
          >
            Runs that match the filters now
          </Link>
        )}
      </section>
      {job.failures.length > 0 && <Failures job={job} />}
      {job.runs.length > 0 && <Named job={job} />}
    </>
  );
}

/** The runs that were chosen one by one. */
function Named({ job }: { job: BulkJob }) {
  const rest = job.named - job.runs.length;
  return (
    <Card title={`Runs that were chosen (${count(job.named)})`}>
      <ul
        tabIndex={0}
        aria-label="Runs that were chosen"
        className="grid max-h-60 grid-cols-[repeat(auto-fill,minmax(7.5rem,1fr))] gap-x-3 gap-y-1 overflow-auto p-3"
      >
        {job.runs.map((run) => (
          <li key={run}>
            <RunId run={run} />
          </li>
        ))}
        {rest > 0 && <li className="text-xs text-muted">and {count(rest)} more</li>}
      </ul>
    </Card>
  );
}

function RunId({ run }: { run: string }) {
  return (
    <Link
      to="/runs/$run"
      params={{ run }}
      title={run}
      className="rounded font-mono text-xs hover:underline"
    >
      {shortId(run)}
    </Link>
  );
}

function Failures({ job }: { job: BulkJob }) {
  return (
    <Card title={`Refused (${count(job.failed)})`}>
      <Table
        caption="Runs that the action was refused for"
        className="max-h-[60vh] !rounded-t-none !border-0"
        rows={job.failures}
        rowKey={(failure) => `${failure.run} ${failure.code}`}
        columns={[
          {
            key: "run",
            head: "Run",
            className: "w-36",
            // a job that broke off names no run
            cell: (failure) => (failure.run ? <RunId run={failure.run} /> : "–"),
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
