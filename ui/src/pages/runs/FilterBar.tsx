/** The filters, all of which are in the address, and chips that take them away again. */
import { Search, X } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { api } from "../../api/client";
import { Button } from "../../components/Button";
import { Input, Select } from "../../components/Input";
import { fromLocal, toLocal } from "../../components/schema";
import { Toggle } from "../../components/Toggle";
import { dateTime, shortId } from "../../lib/format";
import { useApi } from "../../lib/query";
import { useShortcut } from "../../lib/shortcuts";
import { isFiltered, labelsOf, NO_FILTERS, RANGES, type RunsSearch } from "./filters";

type Change = (patch: Partial<Record<keyof RunsSearch, unknown>>, replace?: boolean) => void;

export function FilterBar({ search, change }: { search: Partial<RunsSearch>; change: Change }) {
  const [custom, setCustom] = useState(Boolean(search.since || search.until));
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <TextFilter
          value={String(search.text ?? "")}
          onChange={(text) => change({ text }, true)}
        />
        <WorkflowFilter
          value={String(search.workflow ?? "")}
          onChange={(workflow) => change({ workflow })}
        />
        <LabelFilter
          onAdd={(label) => change({ label: [...new Set([...labelsOf(search), label])].join(",") })}
        />
        <Select
          aria-label="Time range"
          className="!w-auto"
          value={custom ? "custom" : String(search.range ?? "")}
          onChange={(event) => {
            const value = event.target.value;
            setCustom(value === "custom");
            if (value === "custom") change({ range: undefined });
            else change({ range: value, since: undefined, until: undefined });
          }}
        >
          <option value="">Any time</option>
          {RANGES.map((range) => (
            <option key={range.value} value={range.value}>
              {range.name}
            </option>
          ))}
          <option value="custom">From … to …</option>
        </Select>
        {custom && (
          <>
            <Moment
              label="Started at or after"
              value={search.since}
              onChange={(since) => change({ since })}
            />
            <Moment
              label="Started before"
              value={search.until}
              onChange={(until) => change({ until })}
            />
          </>
        )}
        <span className="ml-auto flex">
          <Toggle
            label="Called runs too"
            checked={Boolean(search.called)}
            onChange={(called) => change({ called: called || undefined })}
          />
        </span>
      </div>
      <Chips
        search={search}
        change={(patch) => {
          if ("since" in patch || "until" in patch) setCustom(false);
          change(patch);
        }}
      />
    </div>
  );
}

function Moment(props: {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  return (
    <Input
      type="datetime-local"
      aria-label={props.label}
      title={props.label}
      className="!w-48"
      value={toLocal(props.value)}
      onChange={(event) => props.onChange(fromLocal(event.target.value))}
    />
  );
}

/** What is typed goes into the address after a moment of rest. */
function TextFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  const said = useRef(value);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (value !== said.current) {
      said.current = value;
      setTyped(value);
    }
  }, [value]);
  useEffect(() => {
    if (typed === said.current) return;
    const timer = setTimeout(() => {
      said.current = typed;
      onChange(typed);
    }, 250);
    return () => clearTimeout(timer);
  }, [typed, onChange]);
  useShortcut("/", "Filter by text", () => input.current?.focus(), { group: "Runs" });
  return (
    <span className="relative min-w-40 max-w-72 flex-1">
      <Search
        aria-hidden
        size={14}
        className="pointer-events-none absolute left-2.5 top-1/2 -translate-y-1/2 text-faint"
      />
      <Input
        ref={input}
        type="search"
        aria-label="Id, key, flow or error"
        placeholder="Id, key, flow, error"
        className="!pl-8"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && input.current?.blur()}
      />
    </span>
  );
}

function WorkflowFilter({
  value,
  onChange,
}: {
  value: string;
  onChange: (value: string) => void;
}) {
  const programs = useApi(["programs"], (signal) => api.GET("/api/v1/programs", { signal }));
  const names = new Set(
    programs.data?.flatMap((program) => program.workflows.map((workflow) => workflow.name)),
  );
  if (value) names.add(value);
  return (
    <Select
      aria-label="Flow"
      className="!w-auto max-w-56"
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">Any flow</option>
      {[...names].sort().map((name) => (
        <option key={name}>{name}</option>
      ))}
    </Select>
  );
}

function LabelFilter({ onAdd }: { onAdd: (label: string) => void }) {
  const [typed, setTyped] = useState("");
  const wrong = typed !== "" && typed.indexOf("=") < 1;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!wrong && typed) {
          onAdd(typed.trim());
          setTyped("");
        }
      }}
    >
      <Input
        aria-label="Label, as name=value; Enter adds it"
        placeholder="Label: name=value"
        title="Type name=value and press Enter"
        className="!w-40"
        value={typed}
        onChange={(event) => setTyped(event.target.value.replaceAll(",", ""))}
      />
    </form>
  );
}

function Chips({
  search,
  change,
}: {
  search: Partial<RunsSearch>;
  change: (patch: Parameters<Change>[0]) => void;
}) {
  if (!isFiltered(search)) return null;
  const labels = labelsOf(search);
  const range = RANGES.find((each) => each.value === search.range);
  return (
    <ul aria-label="Filters" className="flex flex-wrap items-center gap-1.5">
      {search.text !== undefined && search.text !== "" && (
        <Chip name="text" onRemove={() => change({ text: undefined })}>
          {String(search.text)}
        </Chip>
      )}
      {search.workflow && (
        <Chip name="flow" onRemove={() => change({ workflow: undefined })}>
          {String(search.workflow)}
        </Chip>
      )}
      {labels.map((label) => (
        <Chip
          key={label}
          name="label"
          onRemove={() => change({ label: labels.filter((each) => each !== label).join(",") })}
        >
          {label}
        </Chip>
      ))}
      {range && (
        <Chip name="started" onRemove={() => change({ range: undefined })}>
          {range.name.toLowerCase()}
        </Chip>
      )}
      {search.since && (
        <Chip name="from" onRemove={() => change({ since: undefined })}>
          {dateTime(search.since)}
        </Chip>
      )}
      {search.until && (
        <Chip name="to" onRemove={() => change({ until: undefined })}>
          {dateTime(search.until)}
        </Chip>
      )}
      {search.parent && (
        <Chip name="called by" onRemove={() => change({ parent: undefined })}>
          {shortId(String(search.parent))}
        </Chip>
      )}
      <li>
        <Button variant="ghost" size="sm" onClick={() => change({ ...NO_FILTERS, state: search.state })}>
          Clear all
        </Button>
      </li>
    </ul>
  );
}

function Chip({
  name,
  onRemove,
  children,
}: {
  name: string;
  onRemove: () => void;
  children: ReactNode;
}) {
  return (
    <li className="flex h-7 items-center gap-1 rounded-full border border-line bg-surface pl-2.5 pr-1 text-xs">
      <span className="text-muted">{name}:</span>
      <span className="max-w-64 truncate font-medium">{children}</span>
      <button
        type="button"
        aria-label={`Remove the filter ${name}`}
        onClick={onRemove}
        className="flex size-5 items-center justify-center rounded-full text-muted hover:bg-sunken hover:text-text"
      >
        <X aria-hidden size={12} />
      </button>
    </li>
  );
}
