/** The store of rows of a run page, in step with the run and with the filters of the address. */
import { useEffect, useMemo, useSyncExternalStore } from "react";
import type { RunSearch } from "../search";
import type { RowQuery } from "./level";
import { RowStore } from "./store";

export function useRowStore(run: string, mark: string | undefined): RowStore {
  const store = useMemo(() => new RowStore(run), [run]);
  useEffect(() => {
    if (mark !== undefined) store.setMark(mark);
  }, [store, mark]);
  return store;
}

/** What the filters ask for; null when none is on. */
export function filterOf(search: RunSearch): RowQuery | null {
  const { state, facet, text, statement } = search;
  if (!state && !facet && !text && !statement) return null;
  return { state, facet, text, statement };
}

export function useFlatRows(store: RowStore, filter: RowQuery | null): number {
  const key = JSON.stringify(filter);
  useMemo(() => store.setFilter(JSON.parse(key) as RowQuery | null), [store, key]);
  return useSyncExternalStore(store.subscribe, store.snapshot);
}
