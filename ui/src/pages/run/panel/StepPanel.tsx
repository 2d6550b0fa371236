/** Everything about one step, beside the rows and with an address of its own. */
import { X } from "lucide-react";
import { Button } from "../../../components/Button";
import { CopyButton } from "../../../components/CopyButton";
import { JsonView } from "../../../components/JsonView";
import { StateBadge } from "../../../components/StateBadge";
import { QueryState } from "../../../components/States";
import { usePref } from "../../../lib/prefs";
import { useShortcut } from "../../../lib/shortcuts";
import type { Ask } from "../actions/verbs";
import { LogView } from "../logs/LogView";
import { type Run, type Step, useStep } from "../queries";
import { useRowName } from "../rows/names";
import type { Patch } from "../search";
import { TranscriptPanel } from "../transcript/TranscriptPanel";
import { ErrorTab } from "./ErrorTab";
import { PaneTabs } from "./PaneTabs";
import { PayloadTab } from "./PayloadTab";
import { Resizer } from "./Resizer";
import { StepActions } from "./StepActions";
import { SummaryTab } from "./SummaryTab";

const LEAST = 360;
const MOST = 900;

export interface StepPanelProps {
  run: Run;
  path: string;
  tab: string | undefined;
  patch: Patch;
  onAsk: (ask: Ask) => void;
}

export function StepPanel({ run, path, tab, patch, onAsk }: StepPanelProps) {
  const step = useStep(run.id, path);
  const [width, setWidth] = usePref("run.panel", 420);
  const close = () => patch({ step: undefined, panel: undefined });
  useShortcut("escape", "Close the panel", close, { group: "Steps" });
  return (
    <aside
      aria-label={`Step ${path}`}
      data-testid="panel"
      className="relative flex min-h-0 max-w-[55%] shrink-0 flex-col border-l border-line bg-surface"
      style={{ width }}
    >
      <Resizer width={width} least={LEAST} most={MOST} onChange={setWidth} />
      <QueryState query={step} label="Reading the step">
        {(data) => (
          <>
            <PanelHead step={data} onClose={close} onAsk={onAsk} />
            <PanelTabs step={data} run={run} tab={tab} patch={patch} />
          </>
        )}
      </QueryState>
      {step.data === undefined && (
        <Button
          variant="ghost"
          size="sm"
          icon={X}
          aria-label="Close the panel"
          className="absolute right-2 top-2"
          onClick={close}
        />
      )}
    </aside>
  );
}

interface HeadProps {
  step: Step;
  onClose: () => void;
  onAsk: (ask: Ask) => void;
}

function PanelHead({ step, onClose, onAsk }: HeadProps) {
  const { row } = step;
  const name = useRowName(row);
  return (
    <div className="flex flex-col gap-1.5 px-4 pb-2 pt-3">
      <div className="flex items-start gap-2">
        <h2 className="min-w-0 flex-1 text-[15px] font-semibold">
          <span className="break-words">{name}</span>{" "}
          <span className="text-[13px] font-normal text-muted">{row.facet}</span>
        </h2>
        <StateBadge state={row.state} />
        <Button variant="ghost" size="sm" icon={X} aria-label="Close the panel" onClick={onClose} />
      </div>
      <div className="flex items-center gap-1 text-xs text-muted">
        <span className="min-w-0 truncate font-mono" title={row.path}>
          {row.path}
        </span>
        <CopyButton text={row.path} label="Copy the path" className="!h-5 !w-5" />
      </div>
      <StepActions step={step} onAsk={onAsk} />
    </div>
  );
}

interface TabsProps {
  step: Step;
  run: Run;
  tab: string | undefined;
  patch: Patch;
}

function PanelTabs({ step, run, tab, patch }: TabsProps) {
  const tabs = [
    { value: "summary", label: "Summary" },
    { value: "input", label: "Input" },
    { value: "output", label: "Output" },
    ...(step.error ? [{ value: "error", label: "Error", mark: <Dot /> }] : []),
    { value: "logs", label: "Logs" },
    ...(step.turn ? [{ value: "llm", label: "LLM" }] : []),
    { value: "raw", label: "Raw" },
  ];
  const open = tabs.some((one) => one.value === tab) ? tab! : step.error ? "error" : "summary";
  return (
    <PaneTabs
      dense
      tabs={tabs}
      value={open}
      label="About the step"
      onChange={(value) => patch({ panel: value })}
    >
      {open === "logs" ? (
        <LogView run={run} step={step.row.path} dense />
      ) : (
        <div className="min-h-0 flex-1 overflow-y-auto p-4" tabIndex={0} role="region" aria-label="About the step">
          {open === "summary" && <SummaryTab step={step} patch={patch} />}
          {open === "input" && <PayloadTab step={step} which="input" />}
          {open === "output" && <PayloadTab step={step} which="output" />}
          {open === "error" && <ErrorTab step={step} patch={patch} />}
          {open === "llm" && step.turn && <TranscriptPanel turn={step.turn} />}
          {open === "raw" && <JsonView value={step.raw} label="Raw step" />}
        </div>
      )}
    </PaneTabs>
  );
}

function Dot() {
  return <span aria-hidden className="size-1.5 rounded-full bg-failed" />;
}
