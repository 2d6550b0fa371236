/** Steps in three ways: beside the graph, on the time axis, and as a flat list. */
import { lazy, Suspense, useMemo } from "react";
import { Empty, Filtered, Loading } from "../../../components/States";
import { Toggle } from "../../../components/Toggle";
import { useNow } from "../../../lib/time";
import type { Run, Summary } from "../queries";
import { FilterBar } from "../rows/FilterBar";
import { RowList } from "../rows/RowList";
import type { RowStore } from "../rows/store";
import { filterOf, useFlatRows } from "../rows/useRows";
import { STATES } from "../rows/words";
import type { Patch, RunSearch } from "../search";
import { Legend } from "../timeline/Axis";
import { makeScale, type Span } from "../timeline/scale";
import { rowParts } from "../timeline/spans";

// the rows are there before the library that draws the graph
const GraphPane = lazy(() => import("../graph/GraphPane"));

export interface StepsProps {
  run: Run;
  store: RowStore;
  summary: Summary | undefined;
  search: RunSearch;
  patch: Patch;
}

export function OverviewTab(props: StepsProps) {
  const { run, search, patch, summary } = props;
  return (
    <div className="@container flex min-h-0 flex-1">
      <div className="flex min-h-0 min-w-0 flex-1 flex-col @4xl:flex-row">
        <div className="h-[38%] min-h-40 shrink-0 border-b border-line bg-bg @4xl:h-auto @4xl:w-[40%] @4xl:border-b-0 @4xl:border-r">
          <Suspense fallback={<Loading label="Reading the graph" />}>
            <GraphPane
              run={run.id}
              statement={search.statement}
              inside={search.inside}
              table={search.view === "table"}
              onStatement={(statement) => patch({ statement })}
              onInside={(inside) => patch({ inside })}
              onTable={(table) => patch({ view: table ? "table" : undefined })}
            />
          </Suspense>
        </div>
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <FilterBar summary={summary} search={search} patch={patch} />
          <Rows {...props} filter={filterOf(search)} />
        </div>
      </div>
    </div>
  );
}

export function ListTab(props: StepsProps) {
  const { search, patch, summary } = props;
  return (
    <>
      <FilterBar summary={summary} search={search} patch={patch} />
      <Rows {...props} filter={filterOf(search) ?? { state: STATES }} />
    </>
  );
}

export function TimelineTab(props: StepsProps) {
  const { search, patch, summary } = props;
  return (
    <>
      <FilterBar summary={summary} search={search} patch={patch}>
        <Toggle
          checked={search.idle ?? false}
          onChange={(idle) => patch({ idle })}
          label="Collapse idle time"
        />
      </FilterBar>
      <TimedRows {...props} />
      <div className="border-t border-line px-3 py-1.5">
        <Legend />
      </div>
    </>
  );
}

interface RowsProps extends StepsProps {
  filter: ReturnType<typeof filterOf>;
}

function Rows({ store, search, patch, filter }: RowsProps) {
  const version = useFlatRows(store, filter);
  return (
    <RowList
      store={store}
      version={version}
      flat={filter !== null}
      selected={search.step}
      onSelect={(step) => patch({ step }, search.step !== undefined)}
      empty={<NoRows search={search} patch={patch} />}
    />
  );
}

/** The rows with the axis; while the run goes on, the axis grows with the clock. */
function TimedRows({ run, store, search, patch }: StepsProps) {
  const filter = filterOf(search);
  const version = useFlatRows(store, filter);
  const tick = useNow();
  const now = run.finished_at ? Date.parse(run.finished_at) : tick;
  const collapse = search.idle ?? false;
  const scale = useMemo(() => {
    const whole = { from: Date.parse(run.created_at), to: now };
    return makeScale(whole, collapse ? busySpans(store, now) : [], collapse);
    // the rows of the store change with its version
  }, [run.created_at, now, collapse, store, version]);
  return (
    <RowList
      store={store}
      version={version}
      flat={filter !== null}
      selected={search.step}
      onSelect={(step) => patch({ step }, search.step !== undefined)}
      scale={scale}
      now={now}
      empty={<NoRows search={search} patch={patch} />}
    />
  );
}

/** What a step does that does nothing. */
const IDLE = new Set(["queued", "waiting", "retry"]);

function busySpans(store: RowStore, now: number): Span[] {
  const spans: Span[] = [];
  for (const row of store.known()) {
    if (row.has_children || row.state === "skipped") continue;
    for (const one of rowParts(row, now)) if (!IDLE.has(one.part)) spans.push(one);
  }
  return spans;
}

function NoRows({ search, patch }: { search: RunSearch; patch: Patch }) {
  if (filterOf(search) !== null) {
    const none = { state: undefined, facet: undefined, text: undefined, statement: undefined };
    return <Filtered onClear={() => patch(none)} />;
  }
  return <Empty title="No steps yet" hint="The run has not begun. Why it waits is said above." />;
}
