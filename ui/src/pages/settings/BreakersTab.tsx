/** Circuit breakers that processes share. */
import { api } from "../../api/client";
import { Button } from "../../components/Button";
import { StateBadge } from "../../components/StateBadge";
import { QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { useAct } from "../../lib/act";
import { count } from "../../lib/format";
import { useApi } from "../../lib/query";
import { Time } from "../../lib/time";

export function BreakersTab() {
  const breakers = useApi(["breakers"], (signal) => api.GET("/api/v1/breakers", { signal }), { every: 5_000 });
  const reset = useAct(
    (name: string) => api.POST("/api/v1/breakers/{name}/reset", { params: { path: { name } } }),
    { topics: ["breakers"], done: (_, name) => `${name} is closed: calls go through again.` },
  );
  const states: Record<string, string> = { closed: "done", open: "failed", half_open: "waiting" };
  return (
    <QueryState query={breakers}>
      {(rows) =>
        rows.length === 0 ? (
          <p className="text-[13px] text-muted">No breaker that processes share was used yet. They share them through Redis.</p>
        ) : (
          <Table
            caption="Circuit breakers"
            rows={rows}
            rowKey={(row) => row.name}
            columns={[
              { key: "state", head: "State", cell: (row) => <StateBadge state={states[row.state] ?? "queued"} label={row.state.replace("_", " ")} /> },
              { key: "name", head: "Breaker", cell: (row) => <code className="font-mono text-xs">{row.name}</code> },
              { key: "failures", head: "Failures", right: true, cell: (row) => count(row.failures) },
              { key: "until", head: "Tried again", cell: (row) => (row.retry_at ? <Time at={row.retry_at} /> : "–") },
              {
                key: "act",
                head: "",
                label: "Actions",
                right: true,
                cell: (row) =>
                  row.state !== "closed" && (
                    <Button size="sm" variant="ghost" onClick={() => reset.mutate(row.name)}>
                      Close it
                    </Button>
                  ),
              },
            ]}
          />
        )
      }
    </QueryState>
  );
}
