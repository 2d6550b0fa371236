/**
 * A window of a log that begins at the end. It grows upwards when the reader goes there and
 * downwards when lines are written; what the reader looks at never moves because of it.
 */
import { useCallback, useEffect, useReducer, useRef } from "react";
import { api, type ApiError, unwrap } from "../../../api/client";
import type { LogLine, LogPage } from "../queries";

export interface LogFilter {
  step?: string;
  level?: string;
  stream?: string;
  grep?: string;
}

const PAGE = 500;
/** More lines than this are not kept: the oldest go, and the page says so. */
const KEPT = 50_000;
/** The server looks through so much of a log at a time: a rare line needs several looks. */
const ENOUGH = 60;
const EVERY = 1_500;

interface LogWindow {
  lines: LogLine[];
  /** goes back before the first line; null at the beginning */
  before: string | null;
  next: string | null;
  loaded: boolean;
  error: ApiError | null;
  /** whether older lines were dropped */
  cut: boolean;
  /** how many lines were put before the others so far: the place of the first line */
  above: number;
}

const EMPTY: LogWindow = { lines: [], before: null, next: null, loaded: false, error: null, cut: false, above: 0 };

type Change =
  | { type: "reset" }
  | { type: "tail"; page: LogPage }
  | { type: "newer"; page: LogPage }
  | { type: "older"; page: LogPage }
  | { type: "failed"; error: ApiError };

function reduce(state: LogWindow, change: Change): LogWindow {
  switch (change.type) {
    case "reset":
      return EMPTY;
    case "tail": {
      const { items, before, next } = change.page;
      return { ...EMPTY, lines: items, before, next, loaded: true };
    }
    case "newer": {
      const lines = [...state.lines, ...change.page.items];
      const gone = Math.max(0, lines.length - KEPT);
      const kept = gone ? lines.slice(gone) : lines;
      return {
        ...state,
        lines: kept,
        before: gone ? null : state.before,
        cut: state.cut || gone > 0,
        above: state.above - gone,
        next: change.page.next ?? state.next,
        error: null,
      };
    }
    case "older": {
      const { items, before } = change.page;
      return {
        ...state,
        lines: [...items, ...state.lines],
        before,
        above: state.above + items.length,
      };
    }
    case "failed":
      return { ...state, error: change.error, loaded: true };
  }
}

type Place = { tail?: boolean; after?: string; before?: string };

export function readLog(run: string, filter: LogFilter, place: Place, limit = PAGE) {
  return unwrap(
    api.GET("/api/v1/runs/{run}/logs", {
      params: { path: { run }, query: { ...filter, ...place, limit } },
    }),
  );
}

export function useLogWindow(run: string, filter: LogFilter, following: boolean) {
  const [state, change] = useReducer(reduce, EMPTY);
  const key = JSON.stringify(filter);
  const latest = useRef(state);
  latest.current = state;
  const busy = useRef(false);

  useEffect(() => {
    let gone = false;
    change({ type: "reset" });
    readLog(run, JSON.parse(key) as LogFilter, { tail: true })
      .then((page) => !gone && change({ type: "tail", page }))
      .catch((error: ApiError) => !gone && change({ type: "failed", error }));
    return () => {
      gone = true;
    };
  }, [run, key]);

  useEffect(() => {
    if (!following) return;
    let gone = false;
    const timer = setInterval(() => {
      const { loaded, next, lines } = latest.current;
      if (!loaded || document.hidden || busy.current) return;
      busy.current = true;
      // where nothing was written yet, there is nothing to go on behind
      const place = next === null ? { tail: true } : { after: next };
      readLog(run, JSON.parse(key) as LogFilter, place)
        .then((page) => {
          if (gone || latest.current.next !== next) return;
          if (next === null && lines.length === 0) change({ type: "tail", page });
          else if (page.items.length > 0) change({ type: "newer", page });
        })
        .catch(() => undefined) // the next look tells
        .finally(() => (busy.current = false));
    }, EVERY);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [run, key, following]);

  const loadOlder = useCallback(() => {
    const { before } = latest.current;
    if (before === null || busy.current) return;
    busy.current = true;
    readLog(run, JSON.parse(key) as LogFilter, { before })
      .then((page) => latest.current.before === before && change({ type: "older", page }))
      .catch(() => undefined)
      .finally(() => (busy.current = false));
  }, [run, key]);

  const { loaded, before, lines } = state;
  const seeking = loaded && before !== null && lines.length < ENOUGH;
  useEffect(() => {
    if (seeking) loadOlder();
  }, [seeking, before, loadOlder]);

  return { ...state, seeking, loadOlder };
}
