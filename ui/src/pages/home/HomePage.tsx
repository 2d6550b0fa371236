/** What somebody who opens the dashboard has to know first. */
import { Link } from "@tanstack/react-router";
import { CircleCheck, Play } from "lucide-react";
import { api, type Schemas } from "../../api/client";
import { buttonClass } from "../../components/Button";
import { Card } from "../../components/Card";
import { Page } from "../../components/Page";
import { ProgressBar } from "../../components/ProgressBar";
import { RunLink } from "../../components/RunLink";
import { plain, Sentence } from "../../components/Sentence";
import { StateBadge } from "../../components/StateBadge";
import { Command, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { money, plural } from "../../lib/format";
import { useLive } from "../../lib/live";
import { useApi } from "../../lib/query";
import { Elapsed, Time } from "../../lib/time";
import { FirstRun } from "./FirstRun";
import { Tiles } from "./Tiles";

type Home = Schemas["Home"];
type RunLine = Schemas["RunLine"];

export default function HomePage() {
  useLive(["home"]);
  const home = useApi(["home"], (signal) => api.GET("/api/v1/home", { signal }));
  return (
    <Page
      title="Home"
      live
      actions={
        <Link to="/runs" search={{ new: true }} className={buttonClass("primary")}>
          <Play aria-hidden size={14} />
          New run
        </Link>
      }
    >
      <QueryState query={home}>
        {(data) => (data.is_new ? <FirstRun /> : <Overview home={data} />)}
      </QueryState>
    </Page>
  );
}

function Overview({ home }: { home: Home }) {
  return (
    <>
      <Tiles home={home} />
      {home.unserved.length > 0 && <Unserved facets={home.unserved} />}
      <div className="grid items-start gap-4 xl:grid-cols-2">
        <Troubled
          title="Failing now"
          runs={home.failing}
          none="No run has failed in the last day."
          all="failed"
        />
        <Troubled title="Stuck now" runs={home.stuck} none="Every open run gets on." all="running" />
      </div>
      <Recent runs={home.recent} />
    </>
  );
}

function Unserved({ facets }: { facets: string[] }) {
  return (
    <section
      aria-label="Work that nobody does"
      className="flex flex-wrap items-center gap-x-4 gap-y-2 rounded-lg border border-lost bg-surface px-4 py-2.5 text-[13px]"
    >
      <p className="min-w-0 flex-1">
        <StateBadge state="lost" label={`${plural(facets.length, "facet")} without a worker`} />{" "}
        <span className="text-muted">Work waits for</span>{" "}
        {facets.slice(0, 6).map((facet, index) => (
          <span key={facet}>
            {index > 0 && ", "}
            <code className="font-mono text-xs">{facet}</code>
          </span>
        ))}
        {facets.length > 6 && ` and ${facets.length - 6} more`}
        <span className="text-muted">. Start a worker whose handlers serve {facets.length === 1 ? "it" : "them"}:</span>
      </p>
      <Command text="afl worker --handlers handlers.py" />
    </section>
  );
}

function Troubled({
  title,
  runs,
  none,
  all,
}: {
  title: string;
  runs: RunLine[];
  none: string;
  all: string;
}) {
  return (
    <Card
      title={title}
      extra={
        <Link
          to="/runs"
          search={{ state: all }}
          className="rounded text-xs text-accent hover:underline"
        >
          All {all} runs
        </Link>
      }
    >
      {runs.length === 0 ? (
        <p className="flex items-center gap-2 px-4 py-5 text-[13px] text-muted">
          <CircleCheck aria-hidden size={16} className="text-done" />
          {none}
        </p>
      ) : (
        <ul>
          {runs.slice(0, 6).map((run) => (
            <li
              key={run.id}
              className="flex flex-col gap-0.5 border-b border-line px-4 py-2 text-[13px] last:border-0"
            >
              <span className="flex items-center gap-3">
                <StateBadge state={run.state} size="sm" />
                <RunLink run={run} />
                <span className="ml-auto shrink-0 text-xs text-muted">
                  <Time at={run.finished_at ?? run.created_at} />
                </span>
              </span>
              {run.error ? (
                <span className="truncate font-mono text-xs text-failed" title={run.error}>
                  {run.error}
                </span>
              ) : (
                <Why run={run.id} />
              )}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** Why a run is where it is, in the sentence that its own page begins with. */
function Why({ run }: { run: string }) {
  const why = useApi(["home", "why", run], (signal) =>
    api.GET("/api/v1/runs/{run}/why", { params: { path: { run } }, signal }),
  );
  if (!why.data?.sentence) return null;
  return (
    <span className="truncate text-xs text-muted" title={plain(why.data.sentence)}>
      <Sentence text={why.data.sentence} />
    </span>
  );
}

function Recent({ runs }: { runs: RunLine[] }) {
  return (
    <Card
      title="Recent runs"
      extra={
        <Link to="/runs" className="rounded text-xs text-accent hover:underline">
          All runs
        </Link>
      }
    >
      {runs.length === 0 ? (
        <p className="px-4 py-5 text-[13px] text-muted">Nothing was run yet.</p>
      ) : (
        <Table
          caption="Recent runs"
          className="!rounded-t-none !border-0"
          rows={runs}
          rowKey={(run) => run.id}
          columns={[
            { key: "state", head: "State", cell: (run) => <StateBadge state={run.state} /> },
            {
              key: "run",
              head: "Run",
              className: "max-w-72",
              cell: (run) => <RunLink run={run} />,
            },
            {
              key: "progress",
              head: "Steps",
              className: "w-48",
              cell: (run) => <ProgressBar progress={run.progress} />,
            },
            {
              key: "started",
              head: "Started",
              right: true,
              cell: (run) => <Time at={run.created_at} />,
            },
            {
              key: "took",
              head: "Duration",
              right: true,
              cell: (run) => <Elapsed from={run.created_at} to={run.finished_at} />,
            },
            {
              key: "cost",
              head: "Cost",
              right: true,
              cell: (run) => (run.cost_usd === null ? "–" : money(run.cost_usd)),
            },
          ]}
        />
      )}
    </Card>
  );
}
