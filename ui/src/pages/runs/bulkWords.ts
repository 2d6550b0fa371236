/** What was asked of many runs, in words and as the filters of the list. */
import type { Schemas } from "../../api/client";
import { plural } from "../../lib/format";

export type BulkLine = Schemas["BulkLine"];
type BulkFilter = Schemas["BulkFilter"];

const TITLES: Record<string, string> = {
  cancel: "Cancel runs",
  pause: "Pause runs",
  resume: "Resume runs",
  retry: "Retry runs",
  rerun: "Rerun runs",
};

export const bulkTitle = (verb: string) => TITLES[verb] ?? verb;

/** Which runs, such as `failed · shop.Order · env=prod`. */
export function bulkAsked(job: Pick<BulkLine, "filter" | "named">): string {
  if (!job.filter) return `${plural(job.named, "run")} chosen one by one`;
  const { state, workflow, labels, text, since, until } = job.filter;
  const parts = [
    state,
    workflow,
    ...Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`),
    text && `“${text}”`,
    since && `since ${day(since)}`,
    until && `until ${day(until)}`,
  ].filter(Boolean);
  return parts.length ? parts.join(" · ") : "all runs";
}

const day = (at: string) => at.slice(0, 16).replace("T", " ");

/** The same filters in the list of runs. Not the state: most actions change it. */
export function bulkSearch(filter: BulkFilter): Record<string, string | boolean> {
  const { workflow, labels, text, since, until, top_only } = filter;
  const label = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return {
    ...(workflow && { workflow }),
    ...(label.length && { label: label.join(",") }),
    ...(text && { text }),
    ...(since && { since }),
    ...(until && { until }),
    ...(!top_only && { called: true }),
  };
}
