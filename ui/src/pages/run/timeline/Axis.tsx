/** The time axis over the bars, and what their colours mean. */
import { type RefObject, useEffect, useRef, useState } from "react";
import { duration } from "../../../lib/format";
import { type Scale, ticks } from "./scale";
import { PART_NOTES, PART_STYLES, PART_WORDS, type Part } from "./spans";

/** How wide a label is, with some room around it. */
const LABEL = 64;

export function Axis({ scale }: { scale: Scale }) {
  const box = useRef<HTMLDivElement>(null);
  const most = useMost(box);
  return (
    <div ref={box} className="relative h-full min-w-0 flex-1 text-[11px] tabular-nums text-muted">
      {ticks(scale, most).map((tick) => (
        <span
          key={tick.at}
          className="absolute bottom-0 top-0 flex items-center border-l border-line pl-1"
          style={{ left: `${tick.place * 100}%` }}
        >
          {tick.place < 1 - 0.6 / most && (tick.at === 0 ? "0" : duration(tick.at))}
        </span>
      ))}
      {scale.breaks.map((one) => (
        <span
          key={one.place}
          title={`${duration(one.ms)} without work, left out`}
          className="absolute bottom-0 top-0 flex -translate-x-1/2 items-center bg-surface px-0.5"
          style={{ left: `${one.place * 100}%` }}
        >
          ⋯
        </span>
      ))}
    </div>
  );
}

/** As many labels as have room. */
function useMost(box: RefObject<HTMLDivElement | null>): number {
  const [most, setMost] = useState(8);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() =>
      setMost(Math.max(1, Math.floor(element.clientWidth / LABEL))),
    );
    watch.observe(element);
    return () => watch.disconnect();
  }, [box]);
  return most;
}

export function Legend() {
  return (
    <ul className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted">
      {(Object.keys(PART_WORDS) as Part[]).map((part) => (
        <li key={part} title={PART_NOTES[part]} className="flex items-center gap-1.5">
          <span className={`h-2.5 w-4 rounded-[2px] ${PART_STYLES[part]}`} />
          {PART_WORDS[part]}
        </li>
      ))}
    </ul>
  );
}
