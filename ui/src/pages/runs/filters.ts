/** The filters of the list, as they stand in the address and as the API takes them. */
import type { Schemas } from "../../api/client";

export type RunWord = Schemas["RunLine"]["state"];

export const STATES: RunWord[] = [
  "running",
  "created",
  "paused",
  "failed",
  "completed",
  "canceled",
];

export interface RunsSearch {
  state: string;
  workflow: string;
  /** `name=value`, several with commas between them */
  label: string;
  text: string;
  /** how far back, such as `24h`; instead of since and until */
  range: string;
  since: string;
  until: string;
  parent: string;
  /** also runs that other runs have called */
  called: boolean;
  new: boolean;
}

export const RANGES: { value: string; name: string; minutes: number }[] = [
  { value: "1h", name: "Last hour", minutes: 60 },
  { value: "24h", name: "Last 24 hours", minutes: 24 * 60 },
  { value: "7d", name: "Last 7 days", minutes: 7 * 24 * 60 },
  { value: "30d", name: "Last 30 days", minutes: 30 * 24 * 60 },
];

export interface Filters {
  workflow?: string;
  label?: string[];
  text?: string;
  since?: string;
  until?: string;
  parent?: string;
}

export function labelsOf(search: Partial<RunsSearch>): string[] {
  return String(search.label ?? "")
    .split(",")
    .map((label) => label.trim())
    .filter((label) => label.indexOf("=") > 0);
}

/** What the API is asked. A range is cut to the minute, so that the same page asks the same. */
export function filtersOf(search: Partial<RunsSearch>, now: number = Date.now()): Filters {
  const filters: Filters = {};
  if (search.workflow) filters.workflow = String(search.workflow);
  const labels = labelsOf(search);
  if (labels.length) filters.label = labels;
  if (search.text !== undefined && search.text !== "") filters.text = String(search.text);
  const range = RANGES.find((each) => each.value === search.range);
  if (range) {
    const minute = Math.floor(now / 60_000) - range.minutes;
    filters.since = new Date(minute * 60_000).toISOString();
  } else {
    if (search.since) filters.since = String(search.since);
    if (search.until) filters.until = String(search.until);
  }
  if (search.parent) filters.parent = String(search.parent);
  else if (!search.called) filters.parent = "none";
  return filters;
}

export function stateOf(search: Partial<RunsSearch>): RunWord | undefined {
  return STATES.find((state) => state === search.state);
}

/** Whether anything but the choice of top-level runs narrows the list. */
export function isFiltered(search: Partial<RunsSearch>): boolean {
  const { workflow, text, range, since, until, parent } = search;
  return (
    Boolean(workflow || range || since || until || parent || labelsOf(search).length) ||
    (text !== undefined && text !== "")
  );
}

/** What clears all of them. */
export const NO_FILTERS = {
  workflow: undefined,
  label: undefined,
  text: undefined,
  range: undefined,
  since: undefined,
  until: undefined,
  parent: undefined,
  state: undefined,
};

type BulkForm = Schemas["BulkForm"];

/** The same filters, as an action on all that match takes them. */
export function bulkFilter(
  search: Partial<RunsSearch>,
  now: number = Date.now(),
): Pick<BulkForm, "state" | "workflow" | "labels" | "text" | "since" | "until" | "top_only"> {
  const filters = filtersOf(search, now);
  const labels = Object.fromEntries(
    labelsOf(search).map((label) => {
      const at = label.indexOf("=");
      return [label.slice(0, at), label.slice(at + 1)];
    }),
  );
  return {
    state: stateOf(search) ?? null,
    workflow: filters.workflow ?? null,
    labels,
    text: filters.text ?? null,
    since: filters.since ?? null,
    until: filters.until ?? null,
    top_only: filters.parent === "none",
  };
}

/** The address of a saved view, without what is only for the moment. */
export function viewQuery(search: Partial<RunsSearch>): string {
  const { new: _, ...kept } = search;
  return new URLSearchParams(
    Object.entries(kept).map(([name, value]) => [name, String(value)]),
  ).toString();
}

export function viewSearch(query: string): Record<string, string | boolean> {
  return Object.fromEntries(
    [...new URLSearchParams(query)].map(([name, value]) => [
      name,
      value === "true" ? true : value,
    ]),
  );
}
