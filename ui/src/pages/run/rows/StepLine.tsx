/** One row of the tree: where it stands, what it is called, how it is, and why. */
import clsx from "clsx";
import { ChevronRight } from "lucide-react";
import { memo } from "react";
import { StateBadge, stateInfo } from "../../../components/StateBadge";
import { count } from "../../../lib/format";
import { Elapsed } from "../../../lib/time";
import type { Row } from "../queries";
import { plain } from "../../../components/Sentence";
import { TallyBar, tallyWords, totalOf } from "./TallyBar";
import { lastPart } from "./path";
import { useRowName } from "./names";

const INDENT = 16;

export interface StepLineProps {
  row: Row;
  depth: number;
  open: boolean;
  /** flat rows show where they stand instead of being indented */
  flat: boolean;
  narrow: boolean;
  onToggle: (path: string) => void;
}

export const StepLine = memo(function StepLine(props: StepLineProps) {
  const { row, narrow } = props;
  return (
    <>
      <NameCell {...props} />
      <StateCell state={row.state} narrow={narrow} />
      {!narrow && (
        <div role="gridcell" className="hidden w-10 shrink-0 text-right text-xs tabular-nums text-muted @xl:block">
          {row.attempts > 1 && <span title={`${row.attempts} attempts`}>×{row.attempts}</span>}
        </div>
      )}
      <div role="gridcell" className="w-[4.5rem] shrink-0 text-right text-xs tabular-nums text-muted">
        <RowTime row={row} />
      </div>
    </>
  );
});

/** Beside the time axis there is room for the icon alone; its word is the title. */
function StateCell({ state, narrow }: { state: string; narrow: boolean }) {
  const { word } = stateInfo(state);
  return (
    <div
      role="gridcell"
      title={word}
      className={clsx("flex shrink-0 items-center", narrow ? "w-4" : "w-24")}
    >
      <StateBadge state={state} size="sm" label={narrow ? "" : undefined} />
      {narrow && <span className="sr-only">{word}</span>}
    </div>
  );
}

function NameCell({ row, depth, open, flat, narrow, onToggle }: StepLineProps) {
  const problem = row.error ?? (row.why && row.state !== "done" ? plain(row.why) : null);
  return (
    <div
      role="gridcell"
      className="flex min-w-0 flex-1 items-center gap-1.5 overflow-hidden"
      style={{ paddingLeft: flat ? 0 : depth * INDENT }}
    >
      {!flat && <Expander row={row} open={open} onToggle={onToggle} />}
      <Name row={row} flat={flat} />
      <Facet row={row} />
      {row.has_children && <Below row={row} narrow={narrow} />}
      <Note row={row} problem={problem} />
    </div>
  );
}

function Expander({ row, open, onToggle }: Pick<StepLineProps, "row" | "open" | "onToggle">) {
  const name = useRowName(row);
  if (!row.has_children) return <span className="w-5 shrink-0" />;
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-label={`${open ? "Close" : "Open"} ${name}`}
      className="grid size-5 shrink-0 place-items-center rounded text-muted hover:bg-sunken hover:text-text"
      onClick={(event) => {
        event.stopPropagation();
        onToggle(row.path);
      }}
    >
      <ChevronRight
        aria-hidden
        size={14}
        className={clsx("transition-transform motion-reduce:transition-none", open && "rotate-90")}
      />
    </button>
  );
}

function Name({ row, flat }: { row: Row; flat: boolean }) {
  const name = useRowName(row);
  if (!flat) return <span className="shrink-0 truncate font-medium">{name}</span>;
  const parents = row.path.slice(0, -lastPart(row.path).length);
  return (
    <span className="max-w-[55%] shrink-0 truncate" title={row.path}>
      <span className="text-muted">{parents}</span>
      <span className="font-medium">{lastPart(row.path)}</span>
    </span>
  );
}

function Facet({ row }: { row: Row }) {
  const text = row.facet;
  if (!text) return null;
  return (
    <span className="min-w-0 max-w-56 truncate text-xs text-muted" title={text}>
      {text}
    </span>
  );
}

function Below({ row, narrow }: { row: Row; narrow: boolean }) {
  const total = totalOf(row.tally);
  if (total < 2) return null;
  const open = tallyWords({ ...row.tally, done: 0, skipped: 0 }, 3);
  return (
    <>
      <span className="shrink-0 text-xs tabular-nums text-muted">{count(total)}</span>
      <TallyBar tally={row.tally} className={clsx("shrink-0", narrow ? "w-10" : "w-20")} />
      {open && !narrow && <span className="min-w-0 truncate text-xs text-muted">{open}</span>}
    </>
  );
}

function Note({ row, problem }: { row: Row; problem: string | null }) {
  if (row.skipped_because !== null) {
    return <Text>because {row.skipped_because || "the run"} failed</Text>;
  }
  if (row.reused !== null) {
    return <Text>{row.reused === "cache" ? "from the cache" : "taken over from another run"}</Text>;
  }
  if (problem === null) return null;
  const bad = row.error !== null;
  return <Text className={bad ? "text-failed" : undefined}>{problem}</Text>;
}

function Text({ children, className }: { children: React.ReactNode; className?: string }) {
  const text = Array.isArray(children) ? children.join("") : String(children);
  return (
    <span className={clsx("min-w-0 flex-1 truncate text-xs", className ?? "text-muted")} title={text}>
      {text}
    </span>
  );
}

function RowTime({ row }: { row: Row }) {
  // what waits for other steps has no time of its own yet
  if (row.state === "skipped" || row.why_code === "upstream") return <>–</>;
  const from = row.started_at ?? row.created_at;
  return <Elapsed from={from} to={row.ended_at} />;
}
