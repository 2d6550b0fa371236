/** What models have cost, and what may be spent. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useMemo, useRef } from "react";
import { api, type Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { Field } from "../../components/Field";
import { Select } from "../../components/Input";
import { Page } from "../../components/Page";
import { Empty, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { cost, count, money } from "../../lib/format";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { RunLink } from "../../components/RunLink";

type Line = Schemas["CostLine"];
type Budget = Schemas["BudgetView"];

const GROUPS = ["model", "run", "agent", "facet", "step", "day"] as const;
type Group = (typeof GROUPS)[number];
const SPANS: Record<string, string> = { "1d": "the last day", "7d": "7 days", "30d": "30 days", "90d": "90 days" };

export default function CostPage() {
  const [search, setSearch] = useSearchState<{ by: Group; since: string }>();
  const by = GROUPS.includes(search.by as Group) ? (search.by as Group) : "model";
  const since = search.since && search.since in SPANS ? search.since : "30d";
  const lines = useApi(
    ["cost", by, since],
    (signal) => api.GET("/api/v1/cost", { params: { query: { by, since, limit: 200 } }, signal }),
    { keep: true },
  );
  const days = useApi(["cost", "day", since], (signal) =>
    api.GET("/api/v1/cost", { params: { query: { by: "day", since, limit: 400 } }, signal }),
  );
  return (
    <Page title="Cost" subtitle="Every request to a model is counted with the commit that keeps its answer.">
      <div className="flex flex-wrap gap-3">
        <Field label="Added up by">
          <Select value={by} onChange={(event) => setSearch({ by: event.target.value as Group })}>
            {GROUPS.map((group) => (
              <option key={group}>{group}</option>
            ))}
          </Select>
        </Field>
        <Field label="Since">
          <Select value={since} onChange={(event) => setSearch({ since: event.target.value })}>
            {Object.entries(SPANS).map(([value, word]) => (
              <option key={value} value={value}>
                {word}
              </option>
            ))}
          </Select>
        </Field>
      </div>
      <QueryState query={lines}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty
              title="No model was asked in this time"
              hint="Facets with a prompt and agents ask models; what they cost is added up here."
              docs="docs/how-to/set-a-budget.md"
            />
          ) : (
            <>
              <Totals rows={rows} />
              {days.data && days.data.length > 1 && (
                <Card title="US dollars by day">
                  <Days rows={days.data} />
                </Card>
              )}
              <Lines rows={rows} by={by} />
            </>
          )
        }
      </QueryState>
      <Budgets />
    </Page>
  );
}

function Totals({ rows }: { rows: Line[] }) {
  const sum = (pick: (row: Line) => number) => rows.reduce((total, row) => total + pick(row), 0);
  const unpriced = sum((row) => row.unpriced);
  return (
    <dl className="flex flex-wrap gap-8 rounded-lg border border-line bg-surface px-4 py-3">
      <Total word="Spent" value={cost(sum((row) => row.cost_usd), unpriced)} />
      <Total word="Tokens" value={count(sum((row) => row.tokens))} />
      <Total word="Requests" value={count(sum((row) => row.requests))} />
      {unpriced > 0 && <Total word="Requests without a price" value={count(unpriced)} />}
    </dl>
  );
}

function Total({ word, value }: { word: string; value: string }) {
  return (
    <div>
      <dt className="text-xs text-muted">{word}</dt>
      <dd className="text-lg font-semibold tabular-nums">{value}</dd>
    </div>
  );
}

function Lines({ rows, by }: { rows: Line[]; by: Group }) {
  return (
    <Table
      caption={`Cost by ${by}`}
      rows={rows}
      rowKey={(row) => row.key}
      columns={[
        {
          key: "key",
          head: by.charAt(0).toUpperCase() + by.slice(1),
          cell: (row) =>
            by === "run" ? (
              <RunLink run={{ id: row.key, workflow: row.key }} />
            ) : (
              <code className="font-mono text-xs">{row.key || "–"}</code>
            ),
        },
        { key: "requests", head: "Requests", right: true, cell: (row) => count(row.requests) },
        { key: "input", head: "Input", right: true, cell: (row) => count(row.input) },
        { key: "cached", head: "Cached", right: true, cell: (row) => count(row.cache_read) },
        { key: "output", head: "Output", right: true, cell: (row) => count(row.output) },
        { key: "cost", head: "Cost", right: true, cell: (row) => cost(row.cost_usd, row.unpriced) },
        {
          key: "unpriced",
          head: "Without a price",
          right: true,
          cell: (row) => (row.unpriced ? count(row.unpriced) : "–"),
        },
      ]}
    />
  );
}

/** Bars of what each day has cost. */
function Days({ rows }: { rows: Line[] }) {
  const host = useRef<HTMLDivElement>(null);
  const data = useMemo(() => {
    const sorted = [...rows].sort((a, b) => a.key.localeCompare(b.key));
    return [
      sorted.map((row) => Date.parse(`${row.key}T00:00:00Z`) / 1000),
      sorted.map((row) => row.cost_usd),
    ] as uPlot.AlignedData;
  }, [rows]);
  useEffect(() => {
    const place = host.current;
    if (!place) return;
    const color = (name: string) => getComputedStyle(place).getPropertyValue(name).trim();
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 } };
    const chart = new uPlot(
      {
        width: place.clientWidth,
        height: 180,
        legend: { show: false },
        scales: { y: { range: (_, __, max) => [0, max * 1.1 || 1] } },
        axes: [axis, { ...axis, values: (_, ticks) => ticks.map((tick) => money(tick)) }],
        series: [
          {},
          {
            stroke: color("--accent"),
            fill: color("--accent-soft"),
            paths: uPlot.paths.bars?.({ size: [0.6, 40] }),
          },
        ],
      },
      data,
      place,
    );
    const watcher = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: 180 }));
    watcher.observe(place);
    return () => {
      watcher.disconnect();
      chart.destroy();
    };
  }, [data]);
  const total = rows.reduce((sum, row) => sum + row.cost_usd, 0);
  return (
    <div
      ref={host}
      role="img"
      aria-label={`Cost by day: ${money(total)} over ${rows.length} days`}
      className="px-2 py-3"
    />
  );
}

function Budgets() {
  const budgets = useApi(["cost", "budgets"], (signal) => api.GET("/api/v1/budgets", { signal }));
  return (
    <Card title="Budgets">
      <QueryState query={budgets}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="px-4 py-3 text-[13px] text-muted">
              Nothing limits what may be spent. <code className="font-mono">afl cost set</code> sets a limit.
            </p>
          ) : (
            <Table
              className="rounded-none border-0"
              caption="Budgets"
              rows={rows}
              rowKey={(row) => `${row.tenant} ${row.scope} ${row.key}`}
              columns={[
                ...(rows.some((row) => row.tenant !== rows[0]?.tenant)
                  ? [{ key: "tenant", head: "Tenant", cell: (row: Budget) => row.tenant }]
                  : []),
                { key: "scope", head: "Of", cell: (row) => `${row.scope} ${row.key}` },
                { key: "spent", head: "Spent", right: true, cell: (row) => spent(row) },
                { key: "limit", head: "Limit", right: true, cell: (row) => limit(row) },
              ]}
            />
          )
        }
      </QueryState>
    </Card>
  );
}

function spent(budget: Budget): string {
  return `${money(budget.spent_usd)}, ${count(budget.spent_tokens)} tokens`;
}

function limit(budget: Budget): string {
  const parts = [
    budget.limit_usd === null ? "" : money(budget.limit_usd),
    budget.limit_tokens === null ? "" : `${count(budget.limit_tokens)} tokens`,
  ];
  return parts.filter(Boolean).join(", ") || "none";
}
