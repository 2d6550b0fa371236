/** What waits for workers, and what was given up. */
import { Link } from "@tanstack/react-router";
import { RotateCcw } from "lucide-react";
import { api, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { Empty, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { useAct } from "../../lib/act";
import { count, plural } from "../../lib/format";
import { useLive } from "../../lib/live";
import { useApi } from "../../lib/query";
import { Elapsed, Time } from "../../lib/time";

type Queue = Schemas["QueueView"];
type Task = Schemas["TaskView"];

export default function QueuesPage() {
  useLive(["home"]);
  const queues = useApi(["home", "queues"], (signal) => api.GET("/api/v1/queues", { signal }));
  return (
    <Page
      title="Queues"
      live
      subtitle="Work that workers may claim, by the list that it waits in. Counts stop at ten thousand."
    >
      <QueryState
        query={queues}
        empty={
          <Empty
            title="Nothing waits, and nobody looks"
            hint="A list appears here when work is put into it, or a worker serves it."
            command="afl worker --handlers handlers"
          />
        }
      >
        {(rows) => <Queues rows={rows} />}
      </QueryState>
      <DeadLetters />
    </Page>
  );
}

function Queues({ rows }: { rows: Queue[] }) {
  return (
    <Table
      caption="Queues"
      rows={rows}
      rowKey={(row) => row.name}
      columns={[
        { key: "name", head: "List", cell: (row) => <code className="font-mono">{row.name}</code> },
        { key: "ready", head: "Ready", right: true, cell: (row) => count(row.ready) },
        {
          key: "oldest",
          head: "Oldest waits",
          right: true,
          cell: (row) =>
            row.oldest_ready_at ? <Elapsed from={row.oldest_ready_at} /> : <span className="text-muted">–</span>,
        },
        { key: "running", head: "Running", right: true, cell: (row) => count(row.running) },
        { key: "waiting", head: "Waiting", right: true, cell: (row) => count(row.waiting) },
        { key: "dead", head: "Dead letters", right: true, cell: (row) => count(row.dead) },
        { key: "workers", head: "Workers", right: true, cell: (row) => count(row.workers) },
        {
          key: "unserved",
          head: "Nobody serves",
          cell: (row) =>
            row.unserved.length > 0 ? (
              <span className="flex flex-wrap items-center gap-2">
                <StateBadge state="lost" size="sm" label={plural(row.unserved.length, "facet")} />
                <code className="font-mono text-xs">{row.unserved.join(", ")}</code>
              </span>
            ) : (
              <span className="text-muted">–</span>
            ),
        },
      ]}
    />
  );
}

function DeadLetters() {
  const letters = useApi(["home", "dead-letters"], (signal) =>
    api.GET("/api/v1/dead-letters", { params: { query: { limit: 100 } }, signal }),
  );
  const redrive = useAct(
    (task: Task) =>
      api.POST("/api/v1/dead-letters/{task}/redrive", { params: { path: { task: task.id } } }),
    { topics: ["home"], done: (_, task) => `The work of ${task.name} is done again.` },
  );
  return (
    <Card title="Dead letters">
      <QueryState query={letters}>
        {(page) =>
          page.items.length === 0 ? (
            <p className="px-4 py-3 text-[13px] text-muted">No work was given up.</p>
          ) : (
            <Table
              className="rounded-none border-0"
              caption="Dead letters"
              rows={page.items}
              rowKey={(row) => row.id}
              columns={[
                { key: "name", head: "Facet", cell: (row) => <code className="font-mono text-xs">{row.name}</code> },
                {
                  key: "run",
                  head: "Step",
                  cell: (row) => (
                    <Link
                      to="/runs/$run"
                      params={{ run: row.run }}
                      search={row.step ? { step: row.step } : {}}
                      className="text-accent hover:underline"
                    >
                      {row.step ?? "the run"}
                    </Link>
                  ),
                },
                {
                  key: "error",
                  head: "Error",
                  className: "w-1/2 max-w-0",
                  cell: (row) => (
                    <span className="block truncate" title={String(row.error?.["message"] ?? "")}>
                      {String(row.error?.["message"] ?? "–")}
                    </span>
                  ),
                },
                { key: "tries", head: "Tries", right: true, cell: (row) => count(row.failures + row.crashes) },
                { key: "when", head: "Given up", className: "whitespace-nowrap", cell: (row) => <Time at={row.closed_at} /> },
                {
                  key: "act",
                  head: "",
                  label: "Actions",
                  right: true,
                  cell: (row) => (
                    <Button
                      size="sm"
                      variant="ghost"
                      icon={RotateCcw}
                      busy={redrive.isPending && redrive.variables?.id === row.id}
                      aria-label={`Do ${row.name} again`}
                      title="Does the work again. The run has gone on without it: retry the run to have it use the result."
                      onClick={() => redrive.mutate(row)}
                    >
                      <span className="max-xl:hidden">Redrive</span>
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </QueryState>
    </Card>
  );
}
