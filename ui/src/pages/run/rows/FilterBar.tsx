/** Which steps are shown: by state, statement, facet and text, kept in the address. */
import clsx from "clsx";
import { Search, TriangleAlert, X } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Button } from "../../../components/Button";
import { Input, Select } from "../../../components/Input";
import { stateInfo, stateText } from "../../../components/StateBadge";
import { count } from "../../../lib/format";
import { useShortcut } from "../../../lib/shortcuts";
import { type Graph, type Summary, useGraph } from "../queries";
import { hasRows } from "../graph/shape";
import type { Patch, RunSearch } from "../search";
import { PROBLEMS, STATES } from "./words";

const NONE = { state: undefined, facet: undefined, text: undefined, statement: undefined };

export function FilterBar({
  summary,
  search,
  patch,
  children,
}: {
  summary: Summary | undefined;
  search: RunSearch;
  patch: Patch;
  children?: ReactNode;
}) {
  const chosen = search.state ?? [];
  const { data: graph } = useGraph(summary?.run);
  const statement = graph?.nodes.find((one) => one.id === search.statement);
  const counts = (search.statement ? statement?.states : summary?.states) ?? {};
  const states = STATES.filter((state) => counts[state] || chosen.includes(state));
  const any = chosen.length > 0 || search.facet || search.text || search.statement;
  const toggle = (state: string) =>
    patch({
      state: chosen.includes(state) ? chosen.filter((one) => one !== state) : [...chosen, state],
    });
  return (
    <div
      role="search"
      aria-label="Filter steps"
      className="flex flex-wrap items-center gap-x-2 gap-y-1.5 border-b border-line px-3 py-2"
    >
      {states.map((state) => (
        <StateChip
          key={state}
          state={state}
          count={counts[state] ?? 0}
          on={chosen.includes(state)}
          onClick={() => toggle(state)}
        />
      ))}
      <ProblemChip chosen={chosen} patch={patch} />
      <span
        className={clsx(
          "flex min-w-0 flex-1 items-center gap-2 whitespace-nowrap",
          // as wide as its parts need to be: what has no room goes to a line of its own
          children ? "basis-[32rem]" : "basis-80",
        )}
      >
        <StatementSelect graph={graph} value={search.statement} patch={patch} />
        <FacetSelect summary={summary} value={search.facet} patch={patch} />
        <TextFilter value={search.text} patch={patch} />
        {any && (
          <Button variant="ghost" size="sm" icon={X} onClick={() => patch(NONE)}>
            Clear
          </Button>
        )}
        {children}
      </span>
    </div>
  );
}

const SELECT = "!h-7 !w-32 min-w-16 shrink !px-1.5 !text-xs";
const CHIP = "inline-flex h-6 items-center gap-1 rounded-full border px-2 text-xs whitespace-nowrap";

function StateChip(props: { state: string; count: number; on: boolean; onClick: () => void }) {
  const { word, icon: Icon } = stateInfo(props.state);
  return (
    <button
      type="button"
      aria-pressed={props.on}
      onClick={props.onClick}
      className={clsx(
        CHIP,
        props.on ? "border-accent bg-accent-soft" : "border-line bg-surface hover:bg-sunken",
      )}
    >
      <Icon aria-hidden size={12} className={stateText(props.state)} />
      {word} <span className="tabular-nums text-muted">{count(props.count)}</span>
    </button>
  );
}

function ProblemChip({ chosen, patch }: { chosen: string[]; patch: Patch }) {
  const on = chosen.length === PROBLEMS.length && PROBLEMS.every((one) => chosen.includes(one));
  return (
    <button
      type="button"
      aria-pressed={on}
      onClick={() => patch({ state: on ? undefined : PROBLEMS })}
      className={clsx(
        CHIP,
        on ? "border-accent bg-accent-soft" : "border-line bg-surface hover:bg-sunken",
      )}
    >
      <TriangleAlert aria-hidden size={12} className="text-muted" />
      Only problems
    </button>
  );
}

/** The statements as they stand in the program; what is in a foreach stands to its right. */
function StatementSelect(props: { graph?: Graph; value?: string; patch: Patch }) {
  const nodes = props.graph?.nodes ?? [];
  const parents = new Map(nodes.map((node) => [node.id, node.parent]));
  const depth = (id: string): number => {
    const above = parents.get(id);
    return above ? depth(above) + 1 : 0;
  };
  const listed = nodes.filter(hasRows);
  const known = listed.some((node) => node.id === props.value);
  return (
    <Select
      aria-label="Statement"
      className={clsx(SELECT, props.value && "!border-accent")}
      value={props.value ?? ""}
      onChange={(event) => props.patch({ statement: event.target.value || undefined })}
    >
      <option value="">any statement</option>
      {props.value && !known && <option value={props.value}>{props.value}</option>}
      {listed.map((node) => (
        <option key={node.id} value={node.id}>
          {"\u2003".repeat(Math.max(0, depth(node.id) - 1))}
          {node.name || node.kind}
        </option>
      ))}
    </Select>
  );
}

function FacetSelect(props: { summary?: Summary; value?: string; patch: Patch }) {
  const known = props.summary?.statements.map((one) => one.facet).filter(Boolean) ?? [];
  const facets = [...new Set([...known, ...(props.value ? [props.value] : [])])].sort();
  return (
    <Select
      aria-label="Facet"
      className={clsx(SELECT, props.value && "!border-accent")}
      value={props.value ?? ""}
      onChange={(event) => props.patch({ facet: event.target.value || undefined })}
    >
      <option value="">any facet</option>
      {facets.map((facet) => (
        <option key={facet}>{facet}</option>
      ))}
    </Select>
  );
}

/** Typing is not sent letter by letter. */
function TextFilter({ value, patch }: { value?: string; patch: Patch }) {
  const [text, setText] = useState(value ?? "");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(value ?? ""), [value]);
  useEffect(() => {
    if (text === (value ?? "")) return;
    const timer = setTimeout(() => patch({ text: text || undefined }), 250);
    return () => clearTimeout(timer);
  }, [text, value, patch]);
  useShortcut("/", "Filter the steps", () => input.current?.focus(), { group: "Steps" });
  return (
    <span className="relative min-w-20 shrink grow basis-28">
      <Search aria-hidden size={13} className="absolute left-2 top-1/2 -translate-y-1/2 text-faint" />
      <Input
        ref={input}
        aria-label="Text in the path, the facet or the error"
        placeholder="Path, facet or error"
        className="!h-7 !pl-7 !text-xs"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          if (text) setText("");
          else input.current?.blur();
        }}
      />
    </span>
  );
}
