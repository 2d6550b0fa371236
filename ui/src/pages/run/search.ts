/** What the address of a run page says: tab, selected step, filters. */
import { useParams } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { useSearchState } from "../../lib/search";

export const TABS = [
  "overview",
  "timeline",
  "steps",
  "events",
  "logs",
  "agents",
  "io",
  "source",
] as const;
export type Tab = (typeof TABS)[number];

export interface RunSearch {
  tab?: Tab;
  /** the path of the step whose panel is open */
  step?: string;
  /** the tab of the panel */
  panel?: string;
  state?: string[];
  facet?: string;
  text?: string;
  statement?: string;
  /** whether stretches of time without work are drawn short */
  idle?: boolean;
  /** a line of the source to show */
  line?: number;
  file?: string;
  turn?: string;
  /** the group of the graph that is drawn alone */
  inside?: string;
  view?: "graph" | "table";
  level?: string;
  stream?: string;
  grep?: string;
  logStep?: string;
}

export type Patch = (changes: Partial<RunSearch>, replace?: boolean) => void;

const asText = (value: unknown) =>
  value === undefined || value === null || value === "" ? undefined : String(value);

function read(raw: Record<string, unknown>): RunSearch {
  const tab = TABS.find((one) => one === raw.tab);
  const states = raw.state === undefined ? [] : [raw.state].flat().map(String);
  return {
    tab,
    step: asText(raw.step),
    panel: asText(raw.panel),
    state: states.length ? states : undefined,
    facet: asText(raw.facet),
    text: asText(raw.text),
    statement: asText(raw.statement),
    idle: raw.idle === true || raw.idle === "true" || undefined,
    line: Number(raw.line) || undefined,
    file: asText(raw.file),
    turn: asText(raw.turn),
    inside: asText(raw.inside),
    view: raw.view === "table" ? "table" : undefined,
    level: asText(raw.level),
    stream: asText(raw.stream),
    grep: asText(raw.grep),
    logStep: asText(raw.logStep),
  };
}

export function useRunId(): string {
  return String((useParams({ strict: false }) as { run?: string }).run ?? "");
}

export function useRunSearch(): [RunSearch, Patch] {
  const [raw, set] = useSearchState<Record<string, unknown>>();
  const search = useMemo(() => read(raw), [raw]);
  const patch = useCallback<Patch>((changes, replace = true) => set(changes, { replace }), [set]);
  return [search, patch];
}
