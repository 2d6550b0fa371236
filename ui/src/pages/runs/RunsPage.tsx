/** All runs: filters in the address, counts by state, and actions on many at once. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Columns3, Download, ListChecks, Play } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { api, ApiError, type Schemas, unwrap } from "../../api/client";
import { Button, buttonClass } from "../../components/Button";
import { Menu, MenuCheck, MenuItem, MenuLabel } from "../../components/Menu";
import { Page } from "../../components/Page";
import { Empty, QueryState } from "../../components/States";
import { toast } from "../../components/Toast";
import { count, plural } from "../../lib/format";
import { useLive } from "../../lib/live";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { useShortcut } from "../../lib/shortcuts";
import { BulkBar, type Chosen } from "./BulkBar";
import { COLUMNS, type RunColumn, type RunLine, shownColumns, useColumns } from "./columns";
import { csv, matching, MOST, save } from "./download";
import { FilterBar } from "./FilterBar";
import {
  bulkFilter,
  type Filters,
  filtersOf,
  isFiltered,
  NO_FILTERS,
  type RunsSearch,
  type RunWord,
  stateOf,
  viewQuery,
  viewSearch,
} from "./filters";
import { NewRun } from "./NewRun";
import { RunTable, type Selection } from "./RunTable";
import { StateTabs } from "./StateTabs";
import { ViewsMenu } from "./ViewsMenu";

const PAGE = 100;
const NO_RUNS: RunLine[] = [];

export default function RunsPage() {
  useLive(["runs"]);
  const [search, set] = useSearchState<RunsSearch>();
  const change = useCallback(
    (patch: object, replace = false) => set(patch, { replace }),
    [set],
  );
  const filters = useFilters(search);
  const state = stateOf(search);
  const runs = useRuns(filters, state);
  const counts = useApi(
    ["runs", "counts", filters],
    (signal) => api.GET("/api/v1/runs/counts", { params: { query: filters }, signal }),
    { keep: true },
  );
  const [chosenColumns] = useColumns();
  const [frame, room] = useRoom();
  const columns = shownColumns(chosenColumns, state, room);
  useShortcut("n", "New run", () => change({ new: true }), { group: "Runs" });
  const clear = () => change(NO_FILTERS);
  return (
    <Page
      title="Runs"
      live
      fill
      actions={
        <>
          <ViewsMenu
            query={viewQuery(search)}
            onOpen={(query) => change({ ...NO_FILTERS, called: undefined, ...viewSearch(query) })}
          />
          <ColumnMenu shown={columns} />
          <Link to="/bulk" className={buttonClass()}>
            <ListChecks aria-hidden size={15} />
            Bulk actions
          </Link>
          <DownloadMenu filters={filters} state={state} columns={columns} />
          <Button variant="primary" icon={Play} onClick={() => change({ new: true })}>
            New run
          </Button>
        </>
      }
    >
      <div ref={frame}>
        <FilterBar search={search} change={change} />
      </div>
      <StateTabs counts={counts.data} state={state} onChange={(next) => change({ state: next })} />
      <QueryState
        query={{ ...runs.query, data: runs.list }}
        label="Looking for runs"
        filtered={{ active: isFiltered(search) || state !== undefined, onClear: clear }}
        empty={
          <Empty
            title="There are no runs"
            hint="A run is one execution of a workflow. Start one here, or on the command line:"
            command="afl submit WORKFLOW"
            action={
              <Button variant="primary" icon={Play} onClick={() => change({ new: true })}>
                New run
              </Button>
            }
          />
        }
      >
        {(list) => (
          <Rows
            // another filter is another list: nothing stays selected
            key={JSON.stringify([filters, state])}
            runs={list}
            columns={columns}
            search={search}
            counts={counts.data}
            more={runs.more}
          />
        )}
      </QueryState>
      {search.new && (
        <NewRun
          workflow={search.workflow ? String(search.workflow) : undefined}
          onClose={() => set({ new: undefined }, { replace: true })}
        />
      )}
    </Page>
  );
}

/** How wide the content is, in pixels. */
function useRoom(): [React.RefObject<HTMLDivElement | null>, number] {
  const frame = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(Infinity);
  useLayoutEffect(() => {
    if (!frame.current) return;
    setRoom(frame.current.clientWidth);
    const observer = new ResizeObserver(([entry]) => entry && setRoom(entry.contentRect.width));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  return [frame, room];
}

/** A range ends now: it is taken anew each minute, and stays the same between. */
function useFilters(search: Partial<RunsSearch>): Filters {
  const [now, setNow] = useState(() => Date.now());
  const ranged = search.range !== undefined;
  useEffect(() => {
    if (!ranged) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 60_000);
    return () => clearInterval(timer);
  }, [ranged]);
  const text = JSON.stringify(filtersOf(search, now));
  return useMemo(() => JSON.parse(text) as Filters, [text]);
}

function useRuns(filters: Filters, state: RunWord | undefined) {
  const query = useInfiniteQuery({
    queryKey: ["runs", "list", filters, state ?? null],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/runs", {
          params: { query: { ...filters, state, cursor: pageParam ?? undefined, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    placeholderData: keepPreviousData,
    retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status >= 400),
  });
  const list = useMemo(() => unique(query.data?.pages.flatMap((page) => page.items)), [query.data]);
  const { hasNextPage, isFetching, fetchNextPage } = query;
  const more = hasNextPage && !isFetching ? () => void fetchNextPage() : undefined;
  return { query, list, more };
}

/** A run that moved from one part of the list to the next while they were read is shown once. */
function unique(runs: RunLine[] | undefined): RunLine[] | undefined {
  if (!runs) return undefined;
  return [...new Map(runs.map((run) => [run.id, run])).values()];
}

function Rows({
  runs,
  columns,
  search,
  counts,
  more,
}: {
  runs: RunLine[];
  columns: RunColumn[];
  search: Partial<RunsSearch>;
  counts: Schemas["RunCounts"] | undefined;
  more?: () => void;
}) {
  const { selection, all, setAll, clear } = useSelection(runs);
  const state = stateOf(search);
  const total = state ? counts?.states.find((each) => each.state === state)?.count : counts?.total;
  const known = total === undefined ? undefined : count(total) + (counts?.exact ? "" : "+");
  const chosen = (): Chosen => (all ? bulkFilter(search) : { runs: [...selection.ids] });
  // an action on all that match cannot be narrowed to the calls of one run
  const canAll = runs.length < (total ?? 0) && selection.ids.size === runs.length && !search.parent;
  return (
    <>
      {selection.ids.size > 0 && (
        <BulkBar
          selected={selection.ids.size}
          all={all}
          total={known}
          chosen={chosen}
          onAll={canAll ? () => setAll(true) : undefined}
          onClear={clear}
        />
      )}
      <RunTable
        runs={runs.length ? runs : NO_RUNS}
        columns={columns}
        selection={selection}
        total={counts?.exact ? total : undefined}
        more={more}
      />
      <p className="-mt-2 text-xs text-muted" role="status">
        {known === undefined
          ? plural(runs.length, "run")
          : `${count(runs.length)} of ${known} ${total === 1 ? "run" : "runs"} listed`}
        {more && runs.length < (total ?? Infinity) && (
          <Button variant="ghost" size="sm" className="ml-2" onClick={more}>
            Load more
          </Button>
        )}
      </p>
    </>
  );
}

function useSelection(runs: RunLine[]) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState(false);
  const anchor = useRef<string | null>(null);
  const clear = () => {
    setIds(new Set());
    setAll(false);
  };
  const selection: Selection = {
    ids,
    toggle: (run, shift) => {
      setAll(false);
      const next = new Set(ids);
      const on = !ids.has(run.id);
      for (const each of shift ? between(runs, anchor.current, run.id) : [run.id]) {
        if (on) next.add(each);
        else next.delete(each);
      }
      anchor.current = run.id;
      setIds(next);
    },
    toggleAll: () => {
      if (ids.size >= runs.length) clear();
      else setIds(new Set(runs.map((run) => run.id)));
    },
  };
  useShortcut("escape", "Clear the selection", clear, { group: "Runs", enabled: ids.size > 0 });
  return { selection, all, setAll, clear };
}

function between(runs: RunLine[], from: string | null, to: string): string[] {
  const at = runs.findIndex((run) => run.id === from);
  const end = runs.findIndex((run) => run.id === to);
  if (at < 0) return [to];
  return runs.slice(Math.min(at, end), Math.max(at, end) + 1).map((run) => run.id);
}

function ColumnMenu({ shown }: { shown: RunColumn[] }) {
  const [, setChosen] = useColumns();
  const chosen = shown.map((column) => column.key);
  return (
    <Menu trigger={<Button icon={Columns3}>Columns</Button>}>
      <MenuLabel>Columns</MenuLabel>
      {COLUMNS.map((column) => (
        <MenuCheck
          key={column.key}
          checked={chosen.includes(column.key)}
          disabled={column.key === "workflow"}
          onCheckedChange={(on) =>
            setChosen(
              COLUMNS.map(({ key }) => key).filter((key) =>
                key === column.key ? on : chosen.includes(key),
              ),
            )
          }
        >
          {column.head}
        </MenuCheck>
      ))}
    </Menu>
  );
}

function DownloadMenu({
  filters,
  state,
  columns,
}: {
  filters: Filters;
  state: RunWord | undefined;
  columns: RunColumn[];
}) {
  const download = async (kind: "csv" | "json") => {
    try {
      const { runs, cut } = await matching(filters, state);
      if (kind === "csv") save("runs.csv", "text/csv", csv(runs, columns));
      else save("runs.json", "application/json", JSON.stringify(runs, null, 2));
      toast(
        `Downloaded ${plural(runs.length, "run")}`,
        cut ? `There are more than ${count(MOST)}: narrow the filters for the others.` : undefined,
      );
    } catch (error) {
      toast.error(error);
    }
  };
  return (
    <Menu trigger={<Button icon={Download} aria-label="Download" title="Download what is listed" />}>
      <MenuItem onSelect={() => void download("csv")}>CSV, with the columns shown</MenuItem>
      <MenuItem onSelect={() => void download("json")}>JSON</MenuItem>
    </Menu>
  );
}
