/** Which lines are shown, and what can be done with them. */
import { Download, WrapText } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "../../../components/Button";
import { Input, Select } from "../../../components/Input";
import { toast } from "../../../components/Toast";
import { shortId } from "../../../lib/format";
import { saveText } from "../header/saving";
import type { LogLine, Run } from "../queries";
import type { Patch, RunSearch } from "../search";
import { type LogFilter, readLog } from "./useLogWindow";

const LEVELS = ["debug", "info", "warning", "error"];
const STREAMS = ["log", "stdout", "stderr", "sys.log"];

export interface LogBarProps {
  run: Run;
  filter: LogFilter;
  dense: boolean;
  wrap: boolean;
  onWrap: (wrap: boolean) => void;
  search: RunSearch;
  patch: Patch;
}

export function LogBar({ run, filter, dense, wrap, onWrap, search, patch }: LogBarProps) {
  const [saving, setSaving] = useState(false);
  const save = async () => {
    setSaving(true);
    try {
      saveText(`run-${shortId(run.id)}.log`, await wholeLog(run.id, filter), "text/plain");
    } catch (problem) {
      toast.error(problem);
    } finally {
      setSaving(false);
    }
  };
  return (
    <div
      role="search"
      aria-label="Filter log lines"
      className="flex flex-wrap items-center gap-2 border-b border-line px-3 py-2"
    >
      <Choice
        name="Level"
        any="any level"
        values={LEVELS}
        value={search.level}
        suffix=" and up"
        onChange={(level) => patch({ level })}
      />
      <Choice
        name="Stream"
        any="any stream"
        values={STREAMS}
        value={search.stream}
        onChange={(stream) => patch({ stream })}
      />
      {!dense && (
        <Typed
          name="Step"
          hint="Step path"
          value={search.logStep}
          onChange={(logStep) => patch({ logStep })}
        />
      )}
      <Typed
        name="Find in lines"
        hint="Find"
        value={search.grep}
        onChange={(grep) => patch({ grep })}
      />
      <span className="flex-1" />
      <Button
        variant="ghost"
        size="sm"
        icon={WrapText}
        aria-pressed={wrap}
        onClick={() => onWrap(!wrap)}
        className={wrap ? "!text-accent" : undefined}
      >
        Wrap
      </Button>
      <Button
        variant="ghost"
        size="sm"
        icon={Download}
        busy={saving}
        onClick={() => void save()}
        aria-label="Download"
      >
        {dense ? undefined : "Download"}
      </Button>
    </div>
  );
}

function Choice(props: {
  name: string;
  any: string;
  values: string[];
  value: string | undefined;
  suffix?: string;
  onChange: (value: string | undefined) => void;
}) {
  return (
    <Select
      aria-label={props.name}
      className="!h-7 !w-auto !text-xs"
      value={props.value ?? ""}
      onChange={(event) => props.onChange(event.target.value || undefined)}
    >
      <option value="">{props.any}</option>
      {props.values.map((one) => (
        <option key={one} value={one}>
          {one}
          {one === "error" || one === "debug" ? "" : props.suffix}
        </option>
      ))}
    </Select>
  );
}

function Typed(props: {
  name: string;
  hint: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  const { value, onChange } = props;
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  useEffect(() => {
    if (text === (value ?? "")) return;
    const timer = setTimeout(() => onChange(text || undefined), 300);
    return () => clearTimeout(timer);
    // the caller makes a new function each time
  }, [text, value]);
  return (
    <Input
      aria-label={props.name}
      placeholder={props.hint}
      className="!h-7 !w-36 !text-xs"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

/** More lines than this are a matter for `afl runs logs`. */
const MOST = 200_000;
const PAGE = 2000;

async function wholeLog(run: string, filter: LogFilter): Promise<string> {
  const parts: string[] = [];
  let after: string | undefined;
  for (let read = 0; read < MOST; read += PAGE) {
    const page = await readLog(run, filter, { after }, PAGE);
    parts.push(...page.items.map(written));
    if (page.items.length < PAGE || page.next === null) break;
    after = page.next;
  }
  return parts.join("\n") + "\n";
}

function written(line: LogLine): string {
  if (line.gap !== null) return `--- ${line.text} ---`;
  return `${line.at} ${line.level ?? line.stream} ${line.step} ${line.text}`;
}
