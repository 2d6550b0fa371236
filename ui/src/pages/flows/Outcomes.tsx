/** The last runs of a workflow as a row of small marks, the oldest first. */
import { Link } from "@tanstack/react-router";
import clsx from "clsx";
import { api } from "../../api/client";
import { stateInfo } from "../../components/StateBadge";
import { count } from "../../lib/format";
import { useApi } from "../../lib/query";

const FILLS: Record<string, string> = {
  done: "bg-done",
  failed: "bg-failed",
  running: "bg-running",
  waiting: "bg-waiting",
  canceled: "bg-canceled",
  queued: "bg-queued",
};

export function Outcomes({ program, workflow }: { program: string; workflow: string }) {
  const states = useApi(["runs", "outcomes", program, workflow], (signal) =>
    api.GET("/api/v1/programs/{program}/runs", {
      params: { path: { program }, query: { workflow } },
      signal,
    }),
  );
  if (!states.data) return <span className="text-muted">…</span>;
  if (states.data.length === 0) return <span className="text-muted">none yet</span>;
  const failed = states.data.filter((state) => state === "failed").length;
  return (
    <Link
      to="/runs"
      search={{ workflow }}
      className="inline-flex h-4 items-end gap-px"
      aria-label={`${count(states.data.length)} runs, ${count(failed)} failed`}
    >
      {[...states.data].reverse().map((state, at) => (
        <span
          key={at}
          aria-hidden
          title={stateInfo(state).word}
          className={clsx(
            "w-1.5 rounded-sm",
            state === "failed" ? "h-4" : "h-3",
            FILLS[stateInfo(state).color] ?? "bg-queued",
          )}
        />
      ))}
    </Link>
  );
}
