/** The states as tabs, each with how many runs are in it under the other filters. */
import clsx from "clsx";
import type { Schemas } from "../../api/client";
import { stateInfo, stateText } from "../../components/StateBadge";
import { count } from "../../lib/format";
import { type RunWord, STATES } from "./filters";

export function StateTabs({
  counts,
  state,
  onChange,
}: {
  counts: Schemas["RunCounts"] | undefined;
  state: RunWord | undefined;
  onChange: (state: RunWord | undefined) => void;
}) {
  const of = (wanted: RunWord) => counts?.states.find((each) => each.state === wanted)?.count ?? 0;
  const plus = counts && !counts.exact ? "+" : "";
  return (
    <div
      role="group"
      aria-label="State"
      className="flex min-w-0 overflow-x-auto border-b border-line xl:gap-1"
    >
      <StateTab
        name="All"
        number={counts && count(counts.total) + plus}
        chosen={state === undefined}
        onClick={() => onChange(undefined)}
      />
      {STATES.map((each) => (
        <StateTab
          key={each}
          name={stateInfo(each).word}
          state={each}
          number={counts && count(of(each)) + (of(each) ? plus : "")}
          chosen={state === each}
          onClick={() => onChange(state === each ? undefined : each)}
        />
      ))}
    </div>
  );
}

function StateTab({
  name,
  state,
  number,
  chosen,
  onClick,
}: {
  name: string;
  state?: RunWord;
  number: string | undefined;
  chosen: boolean;
  onClick: () => void;
}) {
  const Icon = state ? stateInfo(state).icon : null;
  return (
    <button
      type="button"
      aria-pressed={chosen}
      onClick={onClick}
      className={clsx(
        "-mb-px flex h-9 shrink-0 items-center gap-1.5 border-b-2 px-2 text-[13px] xl:px-3 focus-visible:-outline-offset-2",
        chosen
          ? "border-accent font-medium text-text"
          : "border-transparent text-muted hover:text-text",
      )}
    >
      {Icon && state && <Icon aria-hidden size={13} className={stateText(state)} />}
      {name}
      <span className="min-w-5 rounded-full bg-sunken px-1.5 text-center text-xs tabular-nums text-muted">
        {number ?? "·"}
      </span>
    </button>
  );
}
