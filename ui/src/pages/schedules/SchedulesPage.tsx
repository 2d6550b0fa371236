/** What starts runs at its times. */
import { Link } from "@tanstack/react-router";
import { CalendarPlus, Pause, Play, Trash2, Zap } from "lucide-react";
import { useState } from "react";
import { api, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { Empty, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { useAct } from "../../lib/act";
import { dateTime } from "../../lib/format";
import { useLive } from "../../lib/live";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { Time } from "../../lib/time";
import { ScheduleDialog } from "./ScheduleDialog";
import { cronWords } from "./words";

type Schedule = Schemas["ScheduleView"];

export default function SchedulesPage() {
  useLive(["runs"]);
  const [search, setSearch] = useSearchState<{ new: boolean }>();
  const [doomed, setDoomed] = useState<Schedule | null>(null);
  const schedules = useApi(
    ["schedules"],
    (signal) => api.GET("/api/v1/schedules", { params: { query: { limit: 200 } }, signal }),
    { every: 15_000 },
  );
  const act = useScheduleActs();
  const remove = useAct(
    (row: Schedule) => api.DELETE("/api/v1/schedules/{name}", { params: { path: { name: row.name } } }),
    {
      topics: ["schedules"],
      done: (_, row) => `${row.name} was deleted.`,
      onDone: () => setDoomed(null),
    },
  );
  return (
    <Page
      title="Schedules"
      subtitle="Each fire time starts one run, whatever number of processes there is."
      actions={
        <Button variant="primary" icon={CalendarPlus} onClick={() => setSearch({ new: true })}>
          New schedule
        </Button>
      }
    >
      <QueryState query={schedules}>
        {(page) =>
          page.items.length === 0 ? (
            <Empty
              title="Nothing is scheduled"
              hint="A schedule starts a workflow at its times: by cron, again and again, or once."
              command='afl schedules create nightly demo.Report --cron "0 3 * * *"'
              docs="docs/how-to/run-on-a-schedule.md"
            />
          ) : (
            <Table
              caption="Schedules"
              rows={page.items}
              rowKey={(row) => row.name}
              columns={[
                {
                  key: "state",
                  head: "State",
                  cell: (row) =>
                    row.paused ? (
                      <StateBadge state="paused" />
                    ) : (
                      <StateBadge state="done" label="On" />
                    ),
                },
                {
                  key: "name",
                  head: "Schedule",
                  cell: (row) => (
                    <div>
                      <div className="whitespace-nowrap font-medium">{row.name}</div>
                      {row.owner && <div className="text-xs text-muted">declared by {row.owner}</div>}
                    </div>
                  ),
                },
                { key: "workflow", head: "Starts", cell: (row) => <Starts row={row} /> },
                { key: "when", head: "When", cell: (row) => <When row={row} /> },
                { key: "next", head: "Next", className: "whitespace-nowrap", cell: (row) => <Next row={row} /> },
                { key: "last", head: "Last", className: "whitespace-nowrap", cell: (row) => <Last row={row} /> },
                {
                  key: "act",
                  head: "",
                  label: "Actions",
                  right: true,
                  cell: (row) => (
                    <span className="flex justify-end gap-1">
                      <Button size="sm" variant="ghost" icon={Zap} aria-label={`Start ${row.name} now`} title="Start a run now" onClick={() => act.trigger.mutate(row)}>
                        <span className="max-xl:hidden">Now</span>
                      </Button>
                      {row.paused ? (
                        <Button size="sm" variant="ghost" icon={Play} aria-label={`Resume ${row.name}`} title="Resume" onClick={() => act.resume.mutate(row)}>
                          <span className="max-xl:hidden">Resume</span>
                        </Button>
                      ) : (
                        <Button size="sm" variant="ghost" icon={Pause} aria-label={`Pause ${row.name}`} title="Pause" onClick={() => act.pause.mutate(row)}>
                          <span className="max-xl:hidden">Pause</span>
                        </Button>
                      )}
                      <Button size="sm" variant="ghost" icon={Trash2} aria-label={`Delete ${row.name}`} title="Delete" onClick={() => setDoomed(row)} />
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </QueryState>
      <ScheduleDialog open={Boolean(search.new)} onOpenChange={(open) => setSearch({ new: open })} />
      <Confirm
        open={doomed !== null}
        onOpenChange={(open) => !open && setDoomed(null)}
        title={`Delete ${doomed?.name ?? ""}?`}
        verb="Delete"
        danger
        busy={remove.isPending}
        onConfirm={() => doomed && remove.mutate(doomed)}
      >
        It starts nothing any more, and what became of its times is forgotten. Runs that it has started go on.
        {doomed?.owner && " The next deployment that declares it makes it again."}
      </Confirm>
    </Page>
  );
}

function useScheduleActs() {
  const path = (row: Schedule) => ({ params: { path: { name: row.name } } });
  const topics = ["schedules"];
  return {
    pause: useAct((row: Schedule) => api.POST("/api/v1/schedules/{name}/pause", path(row)), {
      topics,
      done: (_, row) => `${row.name} starts nothing until it is resumed.`,
    }),
    resume: useAct((row: Schedule) => api.POST("/api/v1/schedules/{name}/resume", path(row)), {
      topics,
      done: (_, row) => `${row.name} starts runs again.`,
    }),
    trigger: useAct((row: Schedule) => api.POST("/api/v1/schedules/{name}/trigger", path(row)), {
      topics: [...topics, "runs"],
      done: (run) => (
        <>
          Started{" "}
          <Link to="/runs/$run" params={{ run: run.id }} className="underline">
            a run
          </Link>
          .
        </>
      ),
    }),
  };
}

function Starts({ row }: { row: Schedule }) {
  const labels = Object.entries(row.labels).map(([name, value]) => `${name}=${value}`);
  return (
    <div>
      <code className="font-mono text-xs">{row.workflow}</code>
      {labels.length > 0 && (
        <div className="max-w-56 truncate text-xs text-muted" title={labels.join(" ")}>
          {labels.join(" ")}
        </div>
      )}
    </div>
  );
}

function When({ row }: { row: Schedule }) {
  return (
    <div>
      <div>{row.kind === "cron" ? cronWords(row.spec) : row.kind === "once" ? dateTime(row.spec) : `every ${row.spec}`}</div>
      <div className="text-xs text-muted">
        {row.kind === "cron" && <code className="font-mono">{row.spec}</code>} {row.zone}
      </div>
    </div>
  );
}

function Next({ row }: { row: Schedule }) {
  const first = row.next[0];
  if (!first || row.paused) return <span className="text-muted">–</span>;
  return (
    <span title={row.next.map((at) => dateTime(at)).join("\n")}>
      <Time at={first} />
    </span>
  );
}

function Last({ row }: { row: Schedule }) {
  const last = row.history[0];
  if (!last) return <span className="text-muted">never</span>;
  const told = (
    <>
      {last.outcome} <Time at={last.at} />
    </>
  );
  return last.run ? (
    <Link to="/runs/$run" params={{ run: last.run }} className="text-accent hover:underline">
      {told}
    </Link>
  ) : (
    <span>{told}</span>
  );
}
