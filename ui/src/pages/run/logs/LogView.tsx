/** The log of a run or of a step: the end first, and it follows what is written. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "../../../components/Button";
import { Empty, Filtered, Loading, Refused } from "../../../components/States";
import { usePref } from "../../../lib/prefs";
import { plural } from "../../../lib/format";
import type { Run } from "../queries";
import { useRunSearch } from "../search";
import { LogBar } from "./LogBar";
import { LogRow } from "./LogRow";
import { type LogFilter, useLogWindow } from "./useLogWindow";

const HEIGHT = 20;
const NEAR = 48;
const ENDED = new Set(["completed", "failed", "canceled"]);

export function LogView({ run, step, dense = false }: { run: Run; step?: string; dense?: boolean }) {
  const [search, patch] = useRunSearch();
  const [wrap, setWrap] = usePref("run.log.wrap", false);
  const filter: LogFilter = {
    step: step ?? search.logStep,
    level: search.level,
    stream: search.stream,
    grep: search.grep,
  };
  const filtered = Boolean(search.level || search.stream || search.grep || (!step && search.logStep));
  const clear = () =>
    patch({ level: undefined, stream: undefined, grep: undefined, logStep: undefined });
  const ended = ENDED.has(run.state);
  const log = useLogWindow(run.id, filter, !ended);
  const onStep = (path: string) => patch({ step: path, panel: "logs" }, false);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <LogBar run={run} filter={filter} dense={dense} wrap={wrap} onWrap={setWrap} search={search} patch={patch} />
      {!log.loaded || (log.seeking && log.lines.length === 0) ? (
        <Loading label={log.loaded ? "Looking further back" : "Reading the log"} />
      ) : log.error ? (
        <div className="p-4"><Refused problem={log.error.problem} /></div>
      ) : log.lines.length === 0 ? (
        <div className="p-4">
          {filtered ? <Filtered onClear={clear} /> : <NoLines ended={ended} step={step !== undefined} />}
        </div>
      ) : (
        <>
          {log.cut && (
            <p className="border-b border-line px-4 py-1 text-xs text-waiting">
              Older lines are not kept in this page. Load it again to read them.
            </p>
          )}
          <Lines key={JSON.stringify(filter)} log={log} wrap={wrap} dense={dense} onStep={onStep} />
        </>
      )}
    </div>
  );
}

function NoLines({ ended, step }: { ended: boolean; step: boolean }) {
  const what = step ? "this step" : "this run";
  return (
    <Empty
      title={ended ? "Nothing was logged" : "Nothing is logged yet"}
      hint={`What handlers, commands and sys.log of ${what} write appears here.`}
    />
  );
}

type Log = ReturnType<typeof useLogWindow>;

interface LinesProps {
  log: Log;
  wrap: boolean;
  dense: boolean;
  onStep: (path: string) => void;
}

function Lines({ log, wrap, dense, onStep }: LinesProps) {
  const { lines, above } = log;
  const box = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const [read, setRead] = useState(lines.length - above);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => HEIGHT,
    getItemKey: (index) => index - above,
    overscan: 20,
  });
  useKeptPlace(box, above);
  // the number of the last line since the log was opened: it does not change by what is put above
  const end = lines.length - above;
  useEffect(() => {
    if (!atEnd) return;
    rows.scrollToIndex(lines.length - 1, { align: "end" });
    setRead(end);
  }, [atEnd, end, lines.length, rows]);
  useEffect(() => rows.measure(), [wrap, rows]);
  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    const rest = element.scrollHeight - element.scrollTop - element.clientHeight;
    setAtEnd(rest < NEAR);
    if (element.scrollTop < 400) log.loadOlder();
  };
  const fresh = Math.max(0, end - read);
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={box}
        role="log"
        aria-label="Log lines"
        aria-live="off"
        tabIndex={0}
        data-testid="log"
        onScroll={onScroll}
        className="min-h-0 flex-1 overflow-auto bg-surface py-1 [overflow-anchor:none] focus-visible:-outline-offset-2"
      >
        <div className="relative" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => (
            <div
              key={item.key}
              ref={wrap ? rows.measureElement : undefined}
              data-index={item.index}
              className="absolute left-0 min-w-full"
              style={{ top: item.start, width: wrap ? "100%" : undefined }}
            >
              <LogRow line={lines[item.index]!} wrap={wrap} dense={dense} onStep={onStep} />
            </div>
          ))}
        </div>
      </div>
      {!atEnd && (
        <Button
          size="sm"
          icon={ArrowDown}
          className="!absolute bottom-3 left-1/2 -translate-x-1/2 shadow-md"
          onClick={() => setAtEnd(true)}
        >
          {fresh > 0 ? plural(fresh, "new line") : "To the end"}
        </Button>
      )}
    </div>
  );
}

/** What is put above the reader's lines does not move them. */
function useKeptPlace(box: React.RefObject<HTMLDivElement | null>, above: number) {
  const before = useRef(above);
  useLayoutEffect(() => {
    const added = above - before.current;
    before.current = above;
    if (added !== 0 && box.current) box.current.scrollTop += added * HEIGHT;
  }, [above, box]);
}
