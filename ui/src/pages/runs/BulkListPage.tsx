/** Actions on many runs: what was asked, by whom, and how far each is. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { ListChecks } from "lucide-react";
import { api, unwrap } from "../../api/client";
import { Button, buttonClass } from "../../components/Button";
import { Page } from "../../components/Page";
import { ProgressBar } from "../../components/ProgressBar";
import { StateBadge } from "../../components/StateBadge";
import { Empty, QueryState } from "../../components/States";
import { type Column, Table } from "../../components/Table";
import { count } from "../../lib/format";
import { Elapsed, Time } from "../../lib/time";
import { bulkAsked, type BulkLine, bulkSearch, bulkTitle } from "./bulkWords";

const PAGE = 50;
/** In milliseconds: while one goes on, and else. */
const OFTEN = 1000;
const SELDOM = 15_000;

export default function BulkListPage() {
  const query = useInfiniteQuery({
    queryKey: ["bulk", "list"],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/bulk", {
          params: { query: { cursor: pageParam ?? undefined, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.items.some((job) => job.state === "running"))
        ? OFTEN
        : SELDOM,
  });
  const list = query.data?.pages.flatMap((page) => page.items);
  const navigate = useNavigate();
  return (
    <Page title="Bulk actions" subtitle="What was done to many runs at once, the newest first">
      <QueryState query={{ ...query, data: list }} label="Looking for actions" empty={<NoJobs />}>
        {(jobs) => (
          <>
            <Table
              caption="Bulk actions"
              rows={jobs}
              rowKey={(job) => job.id}
              columns={COLUMNS}
              onOpen={(job) => void navigate({ to: "/bulk/$job", params: { job: job.id } })}
            />
            {query.hasNextPage && (
              <Button
                className="self-center"
                busy={query.isFetchingNextPage}
                onClick={() => void query.fetchNextPage()}
              >
                Load more
              </Button>
            )}
          </>
        )}
      </QueryState>
    </Page>
  );
}

function NoJobs() {
  return (
    <Empty
      icon={ListChecks}
      title="Nothing was done to many runs yet"
      hint="Select runs in the list, or all that match its filters, and cancel, pause, resume, retry or rerun them. How far that is and which runs refused it is kept here."
      action={
        <Link to="/runs" className={buttonClass("primary")}>
          Go to the runs
        </Link>
      }
    />
  );
}

const COLUMNS: Column<BulkLine>[] = [
  {
    key: "state",
    head: "State",
    className: "w-28",
    cell: (job) => <StateBadge state={job.state} size="sm" />,
  },
  {
    key: "action",
    head: "Action",
    className: "whitespace-nowrap",
    cell: (job) => (
      <Link to="/bulk/$job" params={{ job: job.id }} className="rounded font-medium hover:underline">
        {bulkTitle(job.verb)}
      </Link>
    ),
  },
  {
    key: "which",
    head: "Which runs",
    className: "max-w-0 w-1/3",
    cell: (job) => <Which job={job} />,
  },
  {
    key: "progress",
    head: "Changed",
    cell: (job) => <JobProgress job={job} />,
  },
  {
    key: "by",
    head: "By",
    className: "max-w-40 truncate",
    cell: (job) => <span title={job.by}>{job.by}</span>,
  },
  {
    key: "at",
    head: "Started",
    className: "whitespace-nowrap",
    cell: (job) => <Time at={job.created_at} />,
  },
  {
    key: "time",
    head: "Time",
    right: true,
    cell: (job) => <Elapsed from={job.created_at} to={job.finished_at} />,
  },
];

/** The runs that fit the filters now, where filters were given; and why. */
function Which({ job }: { job: BulkLine }) {
  const text = bulkAsked(job);
  return (
    <span className="flex min-w-0 flex-col" title={job.reason ? `${text}: ${job.reason}` : text}>
      {job.filter ? (
        <Link
          to="/runs"
          search={bulkSearch(job.filter)}
          className="self-start max-w-full truncate rounded text-accent hover:underline"
        >
          {text}
        </Link>
      ) : (
        <span className="truncate">{text}</span>
      )}
      {job.reason && <span className="truncate text-xs text-muted">{job.reason}</span>}
    </span>
  );
}

function JobProgress({ job }: { job: BulkLine }) {
  return (
    <span className="flex items-center gap-2">
      <span className="w-20 shrink-0">
        <JobBar job={job} />
      </span>
      <span className="whitespace-nowrap text-xs tabular-nums text-muted">
        {count(job.done)} of {count(job.total)}
        {job.failed > 0 && <span className="text-failed"> · {count(job.failed)} refused</span>}
      </span>
    </span>
  );
}

export function JobBar({ job }: { job: BulkLine }) {
  return (
    <ProgressBar
      hideText
      of="runs"
      progress={{
        total: job.total,
        done: job.done,
        failed: job.failed,
        skipped: 0,
        open: Math.max(0, job.total - job.done - job.failed),
      }}
    />
  );
}
