/** The rows of a run, drawn only where they are in sight, read only where they are drawn. */
import { useVirtualizer } from "@tanstack/react-virtual";
import clsx from "clsx";
import { useCallback, useEffect, useId, useRef, useState } from "react";
import { Loading } from "../../../components/States";
import { Axis } from "../timeline/Axis";
import type { Scale } from "../timeline/scale";
import { TimeBar } from "../timeline/TimeBar";
import { StepLine } from "./StepLine";
import type { RowStore } from "./store";
import { useRowKeys } from "./useRowKeys";

const HEIGHT = 30;
/** The rows beside a time axis. */
const TREE = "flex w-[42%] min-w-56 shrink-0 items-center gap-2";

export interface RowListProps {
  store: RowStore;
  version: number;
  flat: boolean;
  selected: string | undefined;
  onSelect: (path: string) => void;
  /** with a time axis beside the rows */
  scale?: Scale;
  now?: number;
  empty: React.ReactNode;
}

export function RowList(props: RowListProps) {
  const { store, version, flat, selected, onSelect, scale } = props;
  const box = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState<string | undefined>(selected);
  const size = store.size;
  const rows = useVirtualizer({
    count: size,
    getScrollElement: () => box.current,
    estimateSize: () => HEIGHT,
    overscan: 12,
  });
  const items = rows.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 40;
  useEffect(() => store.need(first, last), [store, version, first, last]);
  useReveal(store, flat, selected, (index) => rows.scrollToIndex(index, { align: "auto" }));
  useEffect(() => setCursor(selected), [selected]);
  const toggle = useCallback((path: string) => store.toggle(path), [store]);
  const onKeyDown = useRowKeys({
    store,
    cursor,
    setCursor,
    selected,
    onSelect,
    scrollTo: rows.scrollToIndex,
  });
  const id = useId();
  const active = cursor === undefined ? null : store.indexOf(cursor);
  if (store.settled && size === 0) return <div className="p-4">{props.empty}</div>;
  return (
    <div
      ref={box}
      role="treegrid"
      aria-label="Steps"
      aria-rowcount={size + 1}
      aria-colcount={4}
      aria-activedescendant={active === null ? undefined : `${id}-${active}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      className="@container relative min-h-0 flex-1 overflow-auto text-[13px] focus-visible:-outline-offset-2"
      data-testid="rows"
    >
      <Head scale={scale} flat={flat} />
      {!store.settled && <Loading label="Reading the steps" />}
      <div role="rowgroup" style={{ height: rows.getTotalSize(), position: "relative" }}>
        {items.map((item) => {
          const slot = store.at(item.index);
          const path = slot.row?.path;
          return (
            <div
              key={item.index}
              id={`${id}-${item.index}`}
              role="row"
              aria-rowindex={item.index + 2}
              aria-level={slot.depth + 1}
              aria-expanded={
                slot.row?.has_children && !flat ? store.open.has(slot.row.path) : undefined
              }
              aria-selected={path !== undefined && path === selected}
              data-path={path}
              onClick={() => path !== undefined && onSelect(path)}
              className={clsx(
                "absolute inset-x-0 flex cursor-default items-center gap-2 border-b border-line/60 px-3",
                path !== undefined && path === selected
                  ? "bg-accent-soft"
                  : "hover:bg-sunken",
                path !== undefined && path === cursor && "shadow-[inset_2px_0_0_var(--accent)]",
              )}
              style={{ height: HEIGHT, top: item.start }}
            >
              <Cells {...props} slot={slot} toggle={toggle} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Cells({
  store,
  flat,
  scale,
  now = 0,
  slot,
  toggle,
}: RowListProps & { slot: ReturnType<RowStore["at"]>; toggle: (path: string) => void }) {
  const row = slot.row;
  if (row === undefined) return <Placeholder depth={flat ? 0 : slot.depth} />;
  const line = (
    <StepLine
      row={row}
      depth={slot.depth}
      open={store.open.has(row.path)}
      flat={flat}
      narrow={scale !== undefined}
      onToggle={toggle}
    />
  );
  if (scale === undefined) return line;
  return (
    <>
      <div className={clsx("h-full", TREE)} role="presentation">
        {line}
      </div>
      <TimeBar row={row} scale={scale} now={now} />
    </>
  );
}

function Placeholder({ depth }: { depth: number }) {
  return (
    <div role="gridcell" aria-label="Loading" className="flex-1" style={{ paddingLeft: depth * 16 + 20 }}>
      <span className="block h-2.5 w-40 rounded bg-sunken" />
    </div>
  );
}

const HEAD = "text-[11px] font-medium text-muted";

function Head({ scale, flat }: { scale: Scale | undefined; flat: boolean }) {
  const names = (
    <>
      <span role="columnheader" className={clsx(HEAD, "min-w-0 flex-1", !flat && "pl-[26px]")}>
        Step
      </span>
      <span role="columnheader" className={clsx(HEAD, "shrink-0", scale ? "w-4" : "w-24")}>
        {scale ? <span className="sr-only">State</span> : "State"}
      </span>
      {!scale && (
        <span role="columnheader" className={clsx(HEAD, "hidden w-10 shrink-0 text-right @xl:block")} title="Attempts">
          Tries
        </span>
      )}
      <span role="columnheader" className={clsx(HEAD, "w-[4.5rem] shrink-0 text-right")}>
        Time
      </span>
    </>
  );
  return (
    <div
      role="row"
      aria-rowindex={1}
      className="sticky top-0 z-10 flex h-7 items-center gap-2 border-b border-line bg-surface px-3"
    >
      {scale ? (
        <>
          <div role="presentation" className={TREE}>
            {names}
          </div>
          <span role="columnheader" aria-label="When" className="h-full min-w-0 flex-1">
            <Axis scale={scale} />
          </span>
        </>
      ) : (
        names
      )}
    </div>
  );
}

/** Shows the selected step once when it comes from the address, and leaves the place alone then. */
function useReveal(
  store: RowStore,
  flat: boolean,
  selected: string | undefined,
  scrollTo: (index: number) => void,
) {
  const shown = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (selected === undefined || shown.current === selected) return;
    shown.current = selected;
    const show = () => {
      const index = store.indexOf(selected);
      if (index !== null) scrollTo(index);
      return index !== null;
    };
    if (show() || flat) return;
    void store.reveal(selected).then(() => requestAnimationFrame(show));
  });
}
