/** The workers: what they serve, what they have in hand, and when they were last heard of. */
import { Link } from "@tanstack/react-router";
import { LogOut } from "lucide-react";
import { useState } from "react";
import { api, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { CopyButton } from "../../components/CopyButton";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { Empty, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { useAct } from "../../lib/act";
import { plural, shortId } from "../../lib/format";
import { useLive } from "../../lib/live";
import { useApi } from "../../lib/query";
import { Time } from "../../lib/time";

type Worker = Schemas["WorkerView"];

/** Busy is not gone, and stale is not idle: each has a look of its own. */
const LOOKS: Record<string, { state: string; label: string }> = {
  starting: { state: "queued", label: "Starting" },
  idle: { state: "done", label: "Idle" },
  busy: { state: "running", label: "Busy" },
  draining: { state: "paused", label: "Draining" },
  stale: { state: "lost", label: "Stale" },
  failed: { state: "lost", label: "Lost" },
};

export default function WorkersPage() {
  useLive(["workers"]);
  const workers = useApi(["workers"], (signal) => api.GET("/api/v1/workers", { signal }));
  const [draining, setDraining] = useState<Worker | null>(null);
  const drain = useAct(
    (worker: Worker) =>
      api.POST("/api/v1/workers/{worker}/drain", { params: { path: { worker: worker.id } } }),
    {
      topics: ["workers"],
      done: (_, worker) => `${worker.name} claims nothing more and ends when it is done.`,
      onDone: () => setDraining(null),
    },
  );
  return (
    <Page
      title="Workers"
      live
      subtitle="Processes that serve facets and advance runs. One whose lease is over is stale: others take over what it had."
    >
      <QueryState
        query={workers}
        empty={
          <Empty
            title="No worker is there"
            hint="Workers serve facets and advance runs; without one nothing goes on."
            command="afl worker --handlers handlers"
          />
        }
      >
        {(rows) => (
          <Table
            caption="Workers"
            rows={rows}
            rowKey={(row) => row.id}
            columns={[
              {
                key: "state",
                head: "State",
                cell: (row) => <StateBadge {...(LOOKS[row.state] ?? { state: row.state })} />,
              },
              {
                key: "name",
                head: "Worker",
                cell: (row) => (
                  <div>
                    <div className="font-medium">{row.service}</div>
                    <div className="flex items-center gap-1 whitespace-nowrap text-xs text-muted">
                      {row.host} · <code title={row.id}>{shortId(row.id)}</code>
                      <CopyButton text={row.id} label="Copy the id of the worker" />
                    </div>
                  </div>
                ),
              },
              { key: "lists", head: "Queues", className: "max-xl:hidden", cell: (row) => row.lists.join(", ") },
              { key: "handlers", head: "Serves", cell: (row) => <Handlers names={row.handlers} /> },
              { key: "tasks", head: "In hand", cell: (row) => <InHand worker={row} /> },
              {
                key: "seen",
                head: "Last heard of",
                className: "whitespace-nowrap",
                cell: (row) => (
                  <div>
                    <Time at={row.seen_at} />
                    <div className="text-xs text-muted">
                      began <Time at={row.started_at} />
                    </div>
                  </div>
                ),
              },
              {
                key: "act",
                head: "",
                label: "Actions",
                right: true,
                cell: (row) =>
                  ["idle", "busy", "starting"].includes(row.state) && (
                    <Button
                      size="sm"
                      variant="ghost"
                      icon={LogOut}
                      aria-label={`Drain ${row.service} ${shortId(row.id)}`}
                      onClick={() => setDraining(row)}
                    >
                      Drain
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </QueryState>
      <Confirm
        open={draining !== null}
        onOpenChange={(open) => !open && setDraining(null)}
        title={`Drain ${draining?.service ?? ""}?`}
        verb="Drain"
        busy={drain.isPending}
        onConfirm={() => draining && drain.mutate(draining)}
      >
        It claims nothing more, finishes the {plural(draining?.tasks.length ?? 0, "task")} in hand, and
        ends. Others serve what comes then, if they have the same handlers.
      </Confirm>
    </Page>
  );
}

function Handlers({ names }: { names: string[] }) {
  const shown = names.slice(0, 4);
  return (
    <span className="font-mono text-xs" title={names.join("\n")}>
      {shown.join(", ") || "flows alone"}
      {names.length > shown.length && (
        <span className="text-muted"> and {names.length - shown.length} more</span>
      )}
    </span>
  );
}

/** What it is at, by name: a worker may have a hundred tasks of one facet. */
function InHand({ worker }: { worker: Worker }) {
  if (worker.tasks.length === 0) return <span className="text-muted">nothing</span>;
  const names = [...new Set(worker.tasks.map((task) => task.name))];
  const kinds = names.map((name) => worker.tasks.filter((task) => task.name === name));
  return (
    <ul>
      {kinds.slice(0, 3).map((tasks) => {
        const [task] = tasks;
        if (!task) return null;
        return (
          <li key={task.name} className="truncate">
            <Link
              to="/runs/$run"
              params={{ run: task.run }}
              search={task.step ? { step: task.step } : {}}
              className="text-accent hover:underline"
            >
              {task.name}
            </Link>
            {tasks.length > 1 && <span className="text-muted"> ×{tasks.length}</span>}
          </li>
        );
      })}
      {kinds.length > 3 && <li className="text-muted">and {plural(kinds.length - 3, "other facet")}</li>}
    </ul>
  );
}
