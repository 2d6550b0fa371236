/** The rows: a table as every other, of which only the rows in sight are there. */
import { useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import clsx from "clsx";
import { useEffect, useRef, useState } from "react";
import { Checkbox } from "../../components/Input";
import { opens } from "../../components/Table";
import { useShortcut } from "../../lib/shortcuts";
import { BOX, type RunColumn, type RunLine } from "./columns";

const ROW = 34;
/** How many rows before the end the next ones are asked for. */
const AHEAD = 20;

export interface Selection {
  ids: ReadonlySet<string>;
  toggle: (run: RunLine, shift: boolean) => void;
  toggleAll: () => void;
}

export function RunTable({
  runs,
  columns,
  selection,
  total,
  more,
}: {
  runs: RunLine[];
  columns: RunColumn[];
  selection: Selection;
  /** How many there are in all, if that is known. */
  total: number | undefined;
  /** Asks for the next rows; undefined at the end. */
  more?: () => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: runs.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const active = useRowKeys(runs, box, (index) => rows.scrollToIndex(index), selection);
  const items = rows.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && last >= runs.length - AHEAD) more();
  }, [more, last, runs.length]);
  const navigate = useNavigate();
  const before = items[0]?.start ?? 0;
  const after = rows.getTotalSize() - (items.at(-1)?.end ?? 0);
  const width = columns.reduce((sum, column) => sum + column.width, BOX);
  return (
    <div
      ref={box}
      tabIndex={0}
      role="region"
      aria-label="Runs"
      className="min-h-40 min-w-0 flex-1 overflow-auto rounded-lg border border-line bg-surface"
    >
      <table
        aria-rowcount={total === undefined ? -1 : total + 1}
        className="w-full table-fixed border-separate border-spacing-0 text-[13px]"
        style={{ minWidth: width }}
      >
        <caption className="sr-only">Runs, the newest first</caption>
        <colgroup>
          <col style={{ width: BOX }} />
          {columns.map((column) => (
            <col key={column.key} style={column.grow ? undefined : { width: column.width }} />
          ))}
        </colgroup>
        <Head columns={columns} runs={runs} selection={selection} />
        <tbody>
          {before > 0 && <Gap height={before} span={columns.length + 1} />}
          {items.map((item) => {
            const run = runs[item.index];
            if (!run) return null;
            return (
              <Row
                key={run.id}
                run={run}
                index={item.index}
                columns={columns}
                active={active === run.id}
                selected={selection.ids.has(run.id)}
                onSelect={(shift) => selection.toggle(run, shift)}
                onOpen={() => void navigate({ to: "/runs/$run", params: { run: run.id } })}
              />
            );
          })}
          {after > 0 && <Gap height={after} span={columns.length + 1} />}
        </tbody>
      </table>
    </div>
  );
}

/** Where the rows are that are not in sight. */
function Gap({ height, span }: { height: number; span: number }) {
  return (
    <tr aria-hidden>
      <td colSpan={span} className="p-0" style={{ height }} />
    </tr>
  );
}

function Head({
  columns,
  runs,
  selection,
}: {
  columns: RunColumn[];
  runs: RunLine[];
  selection: Selection;
}) {
  const chosen = runs.filter((run) => selection.ids.has(run.id)).length;
  const cell = "sticky top-0 z-10 h-8 border-b border-line bg-surface text-left";
  return (
    <thead>
      <tr>
        <th scope="col" className={clsx(cell, "pl-3.5")}>
          <Checkbox
            checked={chosen === 0 ? false : chosen === runs.length ? true : "indeterminate"}
            onChange={selection.toggleAll}
            label="Select all listed runs"
            hideLabel
          />
        </th>
        {columns.map((column) => (
          <th
            key={column.key}
            scope="col"
            className={clsx(
              cell,
              "truncate px-3 text-xs font-medium text-muted",
              column.right && "!text-right",
            )}
          >
            {column.head}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Row({
  run,
  index,
  columns,
  active,
  selected,
  onSelect,
  onOpen,
}: {
  run: RunLine;
  index: number;
  columns: RunColumn[];
  active: boolean;
  selected: boolean;
  onSelect: (shift: boolean) => void;
  onOpen: () => void;
}) {
  return (
    <tr
      aria-rowindex={index + 2}
      data-row={run.id}
      onClick={(event) => opens(event) && onOpen()}
      className={clsx(
        "cursor-pointer hover:bg-sunken",
        selected ? "bg-accent-soft" : active && "bg-sunken",
      )}
      style={{ height: ROW }}
    >
      <td className={clsx("border-b border-line pl-3.5", active && "shadow-[inset_2px_0_0_var(--accent)]")}>
        <Checkbox
          checked={selected}
          onChange={(_, shift) => onSelect(shift)}
          label={`Select ${run.workflow} ${run.id}`}
          hideLabel
        />
      </td>
      {columns.map((column) => (
        <td
          key={column.key}
          className={clsx(
            "truncate border-b border-line px-3",
            column.right && "text-right tabular-nums",
          )}
        >
          {column.cell(run)}
        </td>
      ))}
    </tr>
  );
}

/** j and k go from row to row, x selects, Enter opens: the focus is on the link of the row. */
function useRowKeys(
  runs: RunLine[],
  box: React.RefObject<HTMLDivElement | null>,
  scroll: (index: number) => void,
  selection: Selection,
): string | null {
  const [active, setActive] = useState<string | null>(null);
  const at = runs.findIndex((run) => run.id === active);
  const move = (to: number) => {
    const run = runs[Math.max(0, Math.min(runs.length - 1, to))];
    if (!run) return;
    setActive(run.id);
    scroll(runs.indexOf(run));
    // the row may come into being only by scrolling
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        box.current
          ?.querySelector<HTMLElement>(`[data-open="${run.id}"]`)
          ?.focus({ preventScroll: true });
      }),
    );
  };
  const navigate = useNavigate();
  useShortcut("j", "Next run", () => move(at + 1), { group: "Runs" });
  useShortcut("k", "Previous run", () => move(at < 0 ? 0 : at - 1), { group: "Runs" });
  useShortcut(
    "x",
    "Select the run",
    () => {
      const run = runs[at];
      if (run) selection.toggle(run, false);
    },
    { group: "Runs" },
  );
  useShortcut(
    "enter",
    "Open the run",
    () => {
      if (active) void navigate({ to: "/runs/$run", params: { run: active } });
    },
    { group: "Runs", enabled: active !== null },
  );
  return active;
}
