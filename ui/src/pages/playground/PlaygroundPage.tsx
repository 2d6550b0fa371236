/** Edit AFL, see what the compiler says and the graph beside it, and run it with stubs for what is outside. */
import { useQuery } from "@tanstack/react-query";
import clsx from "clsx";
import { CircleCheck, CircleX, Play, Rocket } from "lucide-react";
import { lazy, Suspense, useDeferredValue, useEffect, useMemo, useState } from "react";
import { api, type ApiError, type Schemas, unwrap } from "../../api/client";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { FlowGraph } from "../../components/FlowGraph";
import { Select } from "../../components/Input";
import { JsonView } from "../../components/JsonView";
import { Page } from "../../components/Page";
import { initialValue, SchemaForm } from "../../components/SchemaForm";
import { StateBadge } from "../../components/StateBadge";
import { Loading } from "../../components/States";
import { Tabs } from "../../components/Tabs";
import { useAct } from "../../lib/act";
import { plural } from "../../lib/format";
import type { Place } from "../../editor/SourceEditor";
import { parametersSchema } from "../runs/newRun";

const SourceEditor = lazy(() => import("../../editor/SourceEditor"));

type Check = Schemas["CheckResult"];
const KEPT = "afl.playground";
const FILE = "playground.afl";
const START = `namespace demo {
  /** Greets somebody. */
  event facet Greet(name: String) => (text: String)

  workflow Hello(name: String = "world") => (text: String) andThen {
    hello = Greet(name = $.name)
    yield Hello(text = hello.text)
  }
}
`;

export default function PlaygroundPage() {
  const [text, setText] = useState(() => localStorage.getItem(KEPT) ?? START);
  const [tab, setTab] = useState("graph");
  const [place, setPlace] = useState<Place>();
  const settled = useSettled(text, 250);
  useEffect(() => localStorage.setItem(KEPT, settled), [settled]);
  const files = useMemo(() => [{ name: FILE, text: settled }], [settled]);
  const check = useQuery<Check, ApiError>({
    queryKey: ["check", settled],
    queryFn: ({ signal }) => unwrap(api.POST("/api/v1/check", { body: { files, name: "default" }, signal })),
    placeholderData: (before) => before,
  });
  const [chosen, setChosen] = useState("");
  const workflows = check.data?.workflows ?? [];
  const workflow = workflows.find((one) => one.name === chosen) ?? workflows[0];
  const deploy = useAct((name: string) => api.POST("/api/v1/programs", { body: { files, name } }), {
    topics: ["programs"],
    done: (made) => (made.ok ? "Deployed: new runs use it." : "It does not compile, so nothing was deployed."),
  });
  return (
    <Page
      title="Playground"
      fill
      subtitle="Nothing here is kept by the server until you deploy it."
      actions={
        <>
          <Verdict check={check.data} error={check.error} />
          <Button
            icon={Rocket}
            disabled={!check.data?.ok}
            busy={deploy.isPending}
            onClick={() => deploy.mutate("playground")}
            title="Deploys it under the name playground"
          >
            Deploy
          </Button>
        </>
      }
    >
      <div className="grid min-h-0 flex-1 gap-4 lg:grid-cols-2">
        <div className="flex min-h-[360px] min-w-0 flex-col overflow-hidden rounded-lg border border-line bg-surface">
          <section aria-label="Source" className="min-h-0 flex-1">
            <Suspense fallback={<Loading label="Opening the editor" />}>
              <SourceEditor
                value={text}
                onChange={setText}
                diagnostics={check.data?.diagnostics ?? []}
                place={place}
                label="AFL source"
              />
            </Suspense>
          </section>
          <Problems check={check.data} onPlace={setPlace} />
        </div>
        <section aria-label="What it means" className="flex min-h-[360px] min-w-0 flex-col rounded-lg border border-line bg-surface">
          <Tabs
            tabs={[
              { value: "graph", label: "Graph" },
              { value: "try", label: "Try it" },
            ]}
            value={tab}
            onChange={setTab}
            label="What it means"
            fill
          >
            {workflows.length > 1 && (
              <Field label="Workflow" className="px-4 pt-3">
                <Select value={workflow?.name ?? ""} onChange={(event) => setChosen(event.target.value)}>
                  {workflows.map((one) => (
                    <option key={one.name}>{one.name}</option>
                  ))}
                </Select>
              </Field>
            )}
            <div className="relative min-h-0 flex-1 overflow-auto">
              {tab === "graph" && workflow && (
                <Graph files={files} workflow={workflow.name} ok={check.data?.ok} known={!check.isPlaceholderData} />
              )}
              {tab === "try" && workflow && <TryIt key={workflow.name} files={files} workflow={workflow} />}
              {!workflow && (
                <p className="p-4 text-[13px] text-muted">
                  {check.data && !check.data.ok
                    ? "Mend the problems first: there is no workflow to look at."
                    : "There is no workflow in the source yet."}
                </p>
              )}
            </div>
          </Tabs>
        </section>
      </div>
    </Page>
  );
}

/** The value once it has not changed for a while. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return useDeferredValue(settled);
}

function Verdict({ check, error }: { check: Check | undefined; error: ApiError | null }) {
  if (error) return <span className="text-[13px] text-failed">{error.message}</span>;
  if (!check) return <span className="text-[13px] text-muted">checking…</span>;
  const errors = check.diagnostics.filter((one) => one.severity === "error").length;
  return (
    <span role="status" className="flex items-center gap-1.5 text-[13px]">
      {check.ok ? (
        <CircleCheck aria-hidden size={15} className="text-done" />
      ) : (
        <CircleX aria-hidden size={15} className="text-failed" />
      )}
      {check.ok ? "It compiles" : plural(errors, "error")}
    </span>
  );
}

function Problems({ check, onPlace }: { check: Check | undefined; onPlace: (place: Place) => void }) {
  const found = check?.diagnostics ?? [];
  return (
    <section aria-label="Problems" className="max-h-[40%] shrink-0 overflow-auto border-t border-line">
      {found.length === 0 && (
        <p className="px-4 py-2 text-xs text-muted">{check ? "No problems" : "Checking…"}</p>
      )}
      <ul>
        {found.map((one, at) => (
          <li key={at} className="border-b border-line last:border-0">
            <button
              type="button"
              className="block w-full px-4 py-2 text-left text-[13px] hover:bg-sunken"
              onClick={() => onPlace({ line: one.line, column: one.column })}
            >
              <span className={clsx("block", one.severity === "error" ? "text-failed" : "text-waiting")}>
                <code className="font-mono text-xs">{one.code}</code> {one.message}
              </span>
              <span className="block text-xs text-muted">
                line {one.line}, column {one.column}
                {one.help && <> · {one.help}</>}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Asked for only if the source is known to compile: what was drawn before stays until then. */
function Graph({
  files,
  workflow,
  ok,
  known,
}: {
  files: Schemas["SourceFile"][];
  workflow: string;
  ok: boolean | undefined;
  known: boolean;
}) {
  const graph = useQuery<Schemas["GraphView"], ApiError>({
    queryKey: ["check-graph", workflow, files[0]?.text],
    queryFn: ({ signal }) =>
      unwrap(
        api.POST("/api/v1/check/graph", { params: { query: { workflow } }, body: { files, name: "default" }, signal }),
      ),
    enabled: ok && known,
    placeholderData: (before) => before,
  });
  if (graph.error || ok === false) return <p className="p-4 text-[13px] text-muted">The graph comes back when the source compiles.</p>;
  if (!graph.data) return <Loading label="Reading the graph" />;
  return (
    <div className="absolute inset-0">
      <FlowGraph graph={graph.data} />
    </div>
  );
}

function TryIt({ files, workflow }: { files: Schemas["SourceFile"][]; workflow: Schemas["WorkflowView"] }) {
  const schema = useMemo(() => parametersSchema(workflow.parameters), [workflow]);
  const [inputs, setInputs] = useState<unknown>(() => initialValue(schema, schema));
  const [result, setResult] = useState<Schemas["TryResult"] | null>(null);
  const run = useAct(
    () =>
      api.POST("/api/v1/try", {
        body: { files, workflow: workflow.name, inputs: inputs as never, stubs: {} },
      }),
    { topics: [], onDone: setResult },
  );
  return (
    <div className="flex flex-col gap-4 p-4">
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          run.mutate(undefined);
        }}
      >
        <SchemaForm schema={schema} value={inputs} onChange={setInputs} />
        <p className="text-xs text-muted">
          Facets that are done outside answer with made-up values of their types. Nothing real happens.
        </p>
        <div>
          <Button type="submit" variant="primary" icon={Play} busy={run.isPending}>
            Run with stubs
          </Button>
        </div>
      </form>
      {result && (
        <section aria-label="What came of it" className="flex flex-col gap-3">
          <StateBadge state={result.state} />
          <JsonView value={result.outputs ?? result.error} label="Result" />
          <ol className="rounded-md border border-line text-[13px]">
            {result.steps.map((step, at) => (
              <li key={at} className="flex items-center gap-3 border-b border-line px-3 py-1.5 last:border-0">
                <StateBadge state={String(step["state"])} size="sm" />
                <code className="min-w-0 truncate font-mono text-xs">{String(step["path"])}</code>
                <span className="ml-auto text-xs text-muted">{String(step["facet"] ?? "")}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
    </div>
  );
}
