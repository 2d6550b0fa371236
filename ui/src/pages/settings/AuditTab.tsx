/** What was done, and what was refused. */
import { api } from "../../api/client";
import { Card } from "../../components/Card";
import { StateBadge } from "../../components/StateBadge";
import { QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { useApi } from "../../lib/query";
import { Time } from "../../lib/time";

export function AuditTab() {
  const audit = useApi(["audit"], (signal) => api.GET("/api/v1/audit", { params: { query: { limit: 200 } }, signal }));
  return (
    <Card title="What was done, and what was refused">
      <QueryState query={audit}>
        {(page) => (
          <Table
            className="rounded-none border-0"
            caption="Audit trail"
            rows={page.items}
            rowKey={(row) => String(row.id)}
            columns={[
              { key: "at", head: "When", cell: (row) => <Time at={row.at} /> },
              { key: "who", head: "Who", cell: (row) => `${row.subject} (${row.role})` },
              { key: "what", head: "What", cell: (row) => <code className="font-mono text-xs">{row.action}</code> },
              { key: "target", head: "On", cell: (row) => <span className="block max-w-sm truncate font-mono text-xs" title={row.target}>{row.target}</span> },
              {
                key: "status",
                head: "Answer",
                cell: (row) => (
                  <StateBadge
                    state={row.status === 0 ? "lost" : row.status < 400 ? "done" : "failed"}
                    label={row.status === 0 ? "not finished" : String(row.status)}
                  />
                ),
              },
            ]}
          />
        )}
      </QueryState>
    </Card>
  );
}
