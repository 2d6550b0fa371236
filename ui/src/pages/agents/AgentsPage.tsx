/** The agents: what each is at, what it waits for, and its turns. */
import { Link } from "@tanstack/react-router";
import { Square } from "lucide-react";
import { api, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { Empty, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { useAct } from "../../lib/act";
import { cost, count } from "../../lib/format";
import { useLive } from "../../lib/live";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { Elapsed, Time } from "../../lib/time";

type Agent = Schemas["AgentLine"];
type Turn = Schemas["TurnLine"];

const LOOKS: Record<string, string> = {
  idle: "queued",
  dispatched: "queued",
  running: "running",
  suspended: "waiting",
};
const LABELS: Record<string, string> = {
  idle: "Idle",
  dispatched: "Dispatched",
  running: "Running",
  suspended: "Suspended",
};

export default function AgentsPage() {
  useLive(["home"]);
  const [search, setSearch] = useSearchState<{ agent: string }>();
  const agents = useApi(["home", "agents"], (signal) =>
    api.GET("/api/v1/agents", { params: { query: { limit: 200 } }, signal }),
  );
  const stop = useAct(
    (agent: Agent) => api.POST("/api/v1/agents/{agent}/stop", { params: { path: { agent: agent.agent } } }),
    { topics: ["home"], done: (_, agent) => `The turn of ${agent.agent} was stopped.` },
  );
  return (
    <Page title="Agents" live subtitle="Named identities that take turns, one at a time.">
      <QueryState query={agents}>
        {(page) =>
          page.items.length === 0 ? (
            <Empty
              title="No agent is on the roster"
              hint="An agent has a model, tools and limits, and takes turns one at a time."
              command="afl agents set reviewer --model anthropic:claude-sonnet-5"
              docs="docs/how-to/give-an-agent-tools.md"
            />
          ) : (
            <Table
              caption="Agents"
              rows={page.items}
              rowKey={(row) => row.agent}
              active={search.agent ?? null}
              onOpen={(row) => setSearch({ agent: row.agent })}
              columns={[
                {
                  key: "agent",
                  head: "Agent",
                  cell: (row) => (
                    <button
                      type="button"
                      className="font-medium text-accent hover:underline"
                      onClick={() => setSearch({ agent: row.agent })}
                    >
                      {row.agent}
                    </button>
                  ),
                },
                {
                  key: "status",
                  head: "State",
                  cell: (row) => (
                    <StateBadge state={LOOKS[row.status] ?? row.status} label={LABELS[row.status]} />
                  ),
                },
                {
                  key: "turn",
                  head: "Turn",
                  cell: (row) =>
                    row.turn ? (
                      <Link to="/turns/$turn" params={{ turn: row.turn }} className="text-accent hover:underline">
                        Open
                      </Link>
                    ) : (
                      <span className="text-muted">–</span>
                    ),
                },
                {
                  key: "waits",
                  head: "Waits for",
                  cell: (row) => row.waits_for.join(", ") || <span className="text-muted">–</span>,
                },
                { key: "queued", head: "Queued", right: true, cell: (row) => count(row.queued) },
                {
                  key: "model",
                  head: "Model",
                  cell: (row) => <code className="font-mono text-xs">{row.model ?? "by the brief"}</code>,
                },
                {
                  key: "act",
                  head: "",
                  label: "Actions",
                  right: true,
                  cell: (row) =>
                    row.turn && (
                      <Button size="sm" variant="ghost" icon={Square} onClick={() => stop.mutate(row)}>
                        Stop turn
                      </Button>
                    ),
                },
              ]}
            />
          )
        }
      </QueryState>
      {search.agent && <Turns agent={search.agent} />}
    </Page>
  );
}

function Turns({ agent }: { agent: string }) {
  const turns = useApi(["home", "turns", agent], (signal) =>
    api.GET("/api/v1/agents/{agent}/turns", { params: { path: { agent } }, signal }),
  );
  return (
    <Card title={`Turns of ${agent}`}>
      <QueryState query={turns}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="px-4 py-3 text-[13px] text-muted">It has had no turn yet.</p>
          ) : (
            <TurnTable rows={rows} />
          )
        }
      </QueryState>
    </Card>
  );
}

function TurnTable({ rows }: { rows: Turn[] }) {
  return (
    <Table
      className="rounded-none border-0"
      caption="Turns"
      rows={rows}
      rowKey={(row) => row.id}
      columns={[
        {
          key: "state",
          head: "State",
          cell: (row) => <StateBadge state={turnState(row)} label={row.outcome ?? row.state} />,
        },
        {
          key: "text",
          head: "Instruction",
          cell: (row) => (
            <Link
              to="/turns/$turn"
              params={{ turn: row.id }}
              className="block max-w-xl truncate text-accent hover:underline"
            >
              {row.instruction || "Open the turn"}
            </Link>
          ),
        },
        { key: "requests", head: "Requests", right: true, cell: (row) => count(row.requests) },
        { key: "tokens", head: "Tokens", right: true, cell: (row) => count(row.tokens) },
        { key: "cost", head: "Cost", right: true, cell: (row) => cost(row.cost_usd, row.unpriced) },
        { key: "began", head: "Began", cell: (row) => <Time at={row.created_at} /> },
        { key: "took", head: "Took", right: true, cell: (row) => <Elapsed from={row.created_at} to={row.closed_at} /> },
      ]}
    />
  );
}

function turnState(turn: Turn): string {
  const ends: Record<string, string> = { success: "done", partial: "done", canceled: "canceled" };
  if (turn.outcome) return ends[turn.outcome] ?? "failed";
  return turn.state === "ready" ? "queued" : turn.state;
}
