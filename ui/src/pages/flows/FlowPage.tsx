/** One workflow: its graph, source, parameters, who serves its facets, and earlier versions. */
import { Link, useParams } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { lazy, Suspense } from "react";
import { api, type Schemas } from "../../api/client";
import { buttonClass } from "../../components/Button";
import { Card } from "../../components/Card";
import { Field } from "../../components/Field";
import { FlowGraph } from "../../components/FlowGraph";
import { Select } from "../../components/Input";
import { Page } from "../../components/Page";
import { Sentence } from "../../components/Sentence";
import { StateBadge } from "../../components/StateBadge";
import { Empty, Loading, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { Tabs } from "../../components/Tabs";
import { count, plural, shortId } from "../../lib/format";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { Time } from "../../lib/time";
import { difference } from "./difference";
import { Outcomes } from "./Outcomes";

const SourceEditor = lazy(() => import("../../editor/SourceEditor"));

type Program = Schemas["ProgramView"];
interface Search {
  tab: string;
  file: string;
  against: string;
}

export default function FlowPage() {
  const { program, workflow } = useParams({ strict: false }) as { program: string; workflow: string };
  const [search, setSearch] = useSearchState<Search>();
  const found = useApi(["programs", program], (signal) =>
    api.GET("/api/v1/programs/{program}", { params: { path: { program } }, signal }),
  );
  const tabs = [
    { value: "graph", label: "Graph" },
    { value: "source", label: "Source" },
    { value: "facets", label: "Facets" },
    { value: "versions", label: "Versions" },
  ];
  const tab = tabs.some((one) => one.value === search.tab) ? search.tab! : "graph";
  const doc = found.data?.workflows.find((one) => one.name === workflow)?.doc;
  return (
    <Page
      title={workflow}
      name={workflow}
      fill
      subtitle={doc && <Sentence text={doc} />}
      actions={
        <Link to="/runs" search={{ new: true, workflow }} className={buttonClass("primary")}>
          <Play aria-hidden size={14} />
          Run
        </Link>
      }
    >
      <QueryState query={found}>
        {(data) => (
          <>
            <Head program={data} name={program} workflow={workflow} />
            <Tabs tabs={tabs} value={tab} onChange={(value) => setSearch({ tab: value })} label="Flow">
              <div className="flex min-h-[420px] flex-1 flex-col">
                {tab === "graph" && <GraphTab program={program} workflow={workflow} />}
                {tab === "source" && <SourceTab program={data} file={search.file} onFile={(file) => setSearch({ file })} />}
                {tab === "facets" && <FacetsTab program={data} />}
                {tab === "versions" && (
                  <VersionsTab program={data} against={search.against} onAgainst={(against) => setSearch({ against })} />
                )}
              </div>
            </Tabs>
          </>
        )}
      </QueryState>
    </Page>
  );
}

function Head({ program, name, workflow }: { program: Program; name: string; workflow: string }) {
  const found = program.workflows.find((one) => one.name === workflow);
  return (
    <dl className="flex flex-wrap gap-x-8 gap-y-2 rounded-lg border border-line bg-surface px-4 py-3 text-[13px]">
      <div>
        <dt className="text-xs text-muted">Program</dt>
        <dd>
          {name} <code className="font-mono text-xs text-muted" title={program.program}>{shortId(program.program)}</code>
        </dd>
      </div>
      <div>
        <dt className="text-xs text-muted">Takes</dt>
        <dd className="font-mono text-xs">
          {found?.parameters.map((one) => `${one.name}: ${one.type}`).join(", ") || "nothing"}
        </dd>
      </div>
      <div>
        <dt className="text-xs text-muted">Gives</dt>
        <dd className="font-mono text-xs">
          {found?.returns.map((one) => `${one.name}: ${one.type}`).join(", ") || "nothing"}
        </dd>
      </div>
      <div>
        <dt className="text-xs text-muted">Last runs</dt>
        <dd>
          <Outcomes program={name} workflow={workflow} />
        </dd>
      </div>
    </dl>
  );
}

function GraphTab({ program, workflow }: { program: string; workflow: string }) {
  const graph = useApi(["programs", program, "graph", workflow], (signal) =>
    api.GET("/api/v1/programs/{program}/graph", {
      params: { path: { program }, query: { workflow } },
      signal,
    }),
  );
  return (
    <QueryState query={graph} label="Reading the graph">
      {(data) => (
        <div className="h-[520px] overflow-hidden rounded-lg border border-line bg-surface">
          <FlowGraph graph={data} />
        </div>
      )}
    </QueryState>
  );
}

function SourceTab({ program, file, onFile }: { program: Program; file?: string; onFile: (file: string) => void }) {
  const chosen = program.sources.find((one) => one.name === file) ?? program.sources[0];
  if (!chosen) {
    return (
      <Empty
        title="The sources were not deployed"
        hint="The program was made from compiled text. Deploy it from its sources to read them here."
        command="afl deploy flows"
      />
    );
  }
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-2">
      {program.sources.length > 1 && (
        <Field label="File" className="max-w-xs">
          <Select value={chosen.name} onChange={(event) => onFile(event.target.value)}>
            {program.sources.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </Select>
        </Field>
      )}
      <div className="min-h-[420px] flex-1 overflow-hidden rounded-lg border border-line">
        <Suspense fallback={<Loading label="Opening the source" />}>
          <SourceEditor key={chosen.name} value={chosen.text} readOnly label={`Source of ${chosen.name}`} />
        </Suspense>
      </div>
    </div>
  );
}

function FacetsTab({ program }: { program: Program }) {
  return (
    <Table
      caption="Facets"
      rows={program.facets}
      rowKey={(row) => row.name}
      columns={[
        { key: "name", head: "Facet", cell: (row) => <code className="font-mono text-xs">{row.name}</code> },
        { key: "kind", head: "Kind", cell: (row) => row.kind },
        { key: "doc", head: "What it does", cell: (row) => <span className="text-muted"><Sentence text={row.doc ?? "–"} /></span> },
        {
          key: "takes",
          head: "Takes",
          cell: (row) => (
            <code className="font-mono text-xs">{row.parameters.map((one) => `${one.name}: ${one.type}`).join(", ") || "–"}</code>
          ),
        },
        {
          key: "workers",
          head: "Served by",
          cell: (row) =>
            row.workers === null ? (
              <span className="text-muted">the engine</span>
            ) : row.workers === 0 ? (
              <StateBadge state="lost" label="Nobody" />
            ) : (
              plural(row.workers, "worker")
            ),
        },
      ]}
    />
  );
}

function VersionsTab({
  program,
  against,
  onAgainst,
}: {
  program: Program;
  against?: string;
  onAgainst: (program: string) => void;
}) {
  return (
    <div className="flex flex-col gap-4">
      <Table
        caption="Versions"
        rows={program.versions}
        rowKey={(row) => `${row.name} ${row.program} ${row.deployed_at}`}
        columns={[
          { key: "when", head: "Deployed", cell: (row) => <Time at={row.deployed_at} /> },
          { key: "name", head: "As", cell: (row) => row.name },
          { key: "program", head: "Program", cell: (row) => <code className="font-mono text-xs" title={row.program}>{shortId(row.program)}</code> },
          {
            key: "diff",
            head: "",
            label: "Compare",
            right: true,
            cell: (row) =>
              row.program === program.program ? (
                <span className="text-muted">this one</span>
              ) : (
                <button type="button" className="text-accent hover:underline" onClick={() => onAgainst(row.program)}>
                  Compare with this one
                </button>
              ),
          },
        ]}
      />
      {against && <Difference program={program} against={against} />}
    </div>
  );
}

function Difference({ program, against }: { program: Program; against: string }) {
  const other = useApi(["programs", against], (signal) =>
    api.GET("/api/v1/programs/{program}", { params: { path: { program: against } }, signal }),
  );
  return (
    <QueryState query={other}>
      {(before) => {
        const parts = difference(before.sources, program.sources);
        if (parts.length === 0) return <p className="text-[13px] text-muted">The sources are the same.</p>;
        return parts.map((part) => (
          <Card
            key={part.name}
            title={<code className="font-mono text-xs">{part.name}</code>}
            extra={<span className="text-xs text-muted">{`+${count(part.added)} −${count(part.removed)}`}</span>}
          >
            <pre tabIndex={0} role="region" aria-label={`Changes of ${part.name}`} className="overflow-auto py-2 font-mono text-xs leading-5">
              {part.lines.map((line, at) => (
                <span
                  key={at}
                  className={
                    line.sign === "+"
                      ? "block bg-accent-soft px-3 text-done"
                      : line.sign === "-"
                        ? "block bg-sunken px-3 text-failed"
                        : "block px-3 text-muted"
                  }
                >
                  {line.sign} {line.text}
                </span>
              ))}
            </pre>
          </Card>
        ));
      }}
    </QueryState>
  );
}
