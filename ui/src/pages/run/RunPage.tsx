/** The page of a run. Each part loads by itself, so a slow one holds up none of the others. */
import { useEffect, useMemo, useState } from "react";
import { QueryState } from "../../components/States";
import { shortId } from "../../lib/format";
import { useLive } from "../../lib/live";
import { useShortcut } from "../../lib/shortcuts";
import { ActionDialog } from "./actions/ActionDialog";
import type { Ask } from "./actions/verbs";
import { LineageStrip } from "./header/LineageStrip";
import { RunHeader } from "./header/RunHeader";
import { WhyLine } from "./header/WhyLine";
import { LogView } from "./logs/LogView";
import { PaneTabs } from "./panel/PaneTabs";
import { StepPanel } from "./panel/StepPanel";
import { type Run, topic, useGraph, useRun, useSummary } from "./queries";
import { StatementNames } from "./rows/names";
import type { RowStore } from "./rows/store";
import { useNextProblem } from "./rows/useNextProblem";
import { useRowStore } from "./rows/useRows";
import { type Patch, type RunSearch, type Tab, useRunId, useRunSearch } from "./search";
import { AgentsTab } from "./tabs/AgentsTab";
import { EventsTab } from "./tabs/EventsTab";
import { IoTab } from "./tabs/IoTab";
import { SourceTab } from "./tabs/SourceTab";
import { ListTab, OverviewTab, TimelineTab } from "./tabs/StepsTab";

const TABS: { value: Tab; label: string }[] = [
  { value: "overview", label: "Overview" },
  { value: "timeline", label: "Timeline" },
  { value: "steps", label: "Steps" },
  { value: "events", label: "Events" },
  { value: "logs", label: "Logs" },
  { value: "agents", label: "Agents" },
  { value: "io", label: "I/O" },
  { value: "source", label: "Source" },
];

export default function RunPage() {
  const id = useRunId();
  useLive([topic(id)]);
  const run = useRun(id);
  // asked for at the same time as the run, not after it
  const summary = useSummary(id);
  useGraph(id);
  const store = useRowStore(id, summary.data?.mark);
  useEffect(() => store.need(0, 0), [store]);
  useEffect(() => {
    if (run.data) document.title = `${run.data.workflow} ${shortId(id)} · AgentFlow`;
  }, [run.data, id]);
  if (!run.data) {
    return (
      <div className="p-6">
        <h1 className="sr-only">Run {id}</h1>
        <QueryState query={run} label="Reading the run">
          {() => null}
        </QueryState>
      </div>
    );
  }
  return <RunBody key={id} run={run.data} store={store} />;
}

function RunBody({ run, store }: { run: Run; store: RowStore }) {
  const [search, patch] = useRunSearch();
  const summary = useSummary(run.id);
  const [ask, setAsk] = useState<Ask | null>(null);
  const openStep = (step: string) => patch({ step, panel: undefined }, false);
  useKeys(run.id, search, patch);
  return (
    <div className="flex h-full min-h-0 min-w-0 flex-col">
      <RunHeader run={run} summary={summary.data} onAsk={setAsk} />
      <WhyLine why={run.why} onStep={openStep} />
      <LineageStrip run={run.id} />
      <StatementNames value={useNames(run.id)}>
        <PaneTabs
          tabs={TABS}
          value={search.tab ?? "overview"}
          label="About the run"
          onChange={(tab) => patch({ tab: tab === "overview" ? undefined : (tab as Tab) }, false)}
          beside={
            search.step !== undefined && (
              <StepPanel run={run} path={search.step} tab={search.panel} patch={patch} onAsk={setAsk} />
            )
          }
        >
          <TabContent run={run} summary={summary.data} store={store} search={search} patch={patch} />
        </PaneTabs>
      </StatementNames>
      <ActionDialog run={run} ask={ask} onClose={() => setAsk(null)} />
    </div>
  );
}

function useNames(run: string): ReadonlyMap<string, string> {
  const { data } = useGraph(run);
  return useMemo(() => new Map(data?.nodes.map((node) => [node.id, node.name])), [data]);
}

interface ContentProps {
  run: Run;
  summary: ReturnType<typeof useSummary>["data"];
  store: RowStore;
  search: RunSearch;
  patch: Patch;
}

function TabContent(props: ContentProps) {
  const { run, search, patch } = props;
  switch (search.tab ?? "overview") {
    case "overview":
      return <OverviewTab {...props} />;
    case "timeline":
      return <TimelineTab {...props} />;
    case "steps":
      return <ListTab {...props} />;
    case "events":
      return <EventsTab run={run.id} patch={patch} />;
    case "logs":
      return <LogView run={run} />;
    case "agents":
      return <AgentsTab run={run.id} />;
    case "io":
      return <IoTab run={run} />;
    case "source":
      return <SourceTab run={run} search={search} patch={patch} />;
  }
}

function useKeys(run: string, search: RunSearch, patch: Patch) {
  const next = useNextProblem(run);
  const group = { group: "Run" };
  useShortcut("g", "Graph", () => patch({ tab: undefined }, false), group);
  useShortcut("l", "Logs", () => patch({ tab: "logs" }, false), group);
  useShortcut("t", "Timeline", () => patch({ tab: "timeline" }, false), group);
  useShortcut(
    "f",
    "Next failure",
    () => void next(search.step).then((step) => step && patch({ step, panel: undefined })),
    group,
  );
}
