/** What can be run: the workflows of the deployed programs. */
import { Link } from "@tanstack/react-router";
import { FlaskConical, Play } from "lucide-react";
import { api, type Schemas } from "../../api/client";
import { buttonClass } from "../../components/Button";
import { Card } from "../../components/Card";
import { Page } from "../../components/Page";
import { Sentence } from "../../components/Sentence";
import { StateBadge } from "../../components/StateBadge";
import { Empty, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { plural, shortId } from "../../lib/format";
import { useLive } from "../../lib/live";
import { useApi } from "../../lib/query";
import { Outcomes } from "./Outcomes";

type Deployment = Schemas["DeploymentLine"];

export default function FlowsPage() {
  useLive(["runs"]);
  const programs = useApi(["programs"], (signal) => api.GET("/api/v1/programs", { signal }));
  return (
    <Page
      title="Flows"
      subtitle="Workflows that can be started. A run keeps the program that it began with."
      actions={
        <Link to="/playground" className={buttonClass("secondary")}>
          <FlaskConical aria-hidden size={14} />
          Playground
        </Link>
      }
    >
      <QueryState query={programs}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty
              title="No program is deployed"
              hint="Flows are written in AFL, checked, and deployed under a name."
              command="afl deploy flows"
              docs="docs/tutorial/first-flow.md"
            />
          ) : (
            rows.map((row) => <Program key={row.name} program={row} />)
          )
        }
      </QueryState>
    </Page>
  );
}

function Program({ program }: { program: Deployment }) {
  return (
    <Card
      title={
        <span className="flex items-center gap-2">
          {program.name}
          <code className="font-mono text-xs font-normal text-muted" title={program.program}>
            {shortId(program.program)}
          </code>
        </span>
      }
      extra={
        program.unserved.length > 0 && (
          <span className="flex items-center gap-2 text-xs" title={program.unserved.join("\n")}>
            <StateBadge state="lost" size="sm" label={`${plural(program.unserved.length, "facet")} nobody serves`} />
            <code className="font-mono">{program.unserved.slice(0, 3).join(", ")}</code>
          </span>
        )
      }
    >
      <Table
        className="rounded-none border-0"
        caption={`Workflows of ${program.name}`}
        rows={program.workflows}
        rowKey={(row) => row.name}
        columns={[
          {
            key: "name",
            head: "Workflow",
            cell: (row) => (
              <Link
                to="/flows/$program/$workflow"
                params={{ program: program.name, workflow: row.name }}
                className="font-mono text-[13px] text-accent hover:underline"
              >
                {row.name}
              </Link>
            ),
          },
          { key: "doc", head: "What it does", cell: (row) => <span className="text-muted"><Sentence text={row.doc ?? "–"} /></span> },
          {
            key: "parameters",
            head: "Takes",
            cell: (row) => (
              <code className="font-mono text-xs">
                {row.parameters.map((one) => `${one.name}: ${one.type}`).join(", ") || "–"}
              </code>
            ),
          },
          {
            key: "outcomes",
            head: "Last runs",
            cell: (row) => <Outcomes program={program.name} workflow={row.name} />,
          },
          {
            key: "act",
            head: "",
            label: "Actions",
            right: true,
            cell: (row) => (
              <Link
                to="/runs"
                search={{ new: true, workflow: row.name }}
                className={buttonClass("ghost", "sm")}
                aria-label={`Run ${row.name}`}
              >
                <Play aria-hidden size={13} />
                Run
              </Link>
            ),
          },
        ]}
      />
    </Card>
  );
}
