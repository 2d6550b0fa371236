/** The bar of one row on the time axis. */
import { useQueryClient } from "@tanstack/react-query";
import clsx from "clsx";
import { duration } from "../../../lib/format";
import { type Row, type Step, topic } from "../queries";
import type { Scale } from "./scale";
import { type BarPart, PART_STYLES, PART_WORDS, rowParts, stepParts } from "./spans";

export function TimeBar({ run, row, scale, now }: { run: string; row: Row; scale: Scale; now: number }) {
  const queries = useQueryClient();
  // a step whose panel was opened has its attempts at hand
  const step =
    row.attempts > 1 ? queries.getQueryData<Step>([topic(run), "step", row.path]) : undefined;
  const parts = step ? stepParts(step, now) : rowParts(row, now);
  const words = parts.map((one) => `${PART_WORDS[one.part]} ${duration(one.to - one.from)}`);
  return (
    <div
      role="gridcell"
      aria-label={words.join(", ") || "not run"}
      title={words.join(" · ")}
      className="relative h-full min-w-0 flex-1"
    >
      {parts.map((one, at) => (
        <Piece key={at} piece={one} scale={scale} group={row.has_children} />
      ))}
    </div>
  );
}

function Piece({ piece, scale, group }: { piece: BarPart; scale: Scale; group: boolean }) {
  const left = scale.place(piece.from) * 100;
  const width = scale.place(piece.to) * 100 - left;
  return (
    <span
      className={clsx(
        "absolute top-1/2 min-w-[2px] -translate-y-1/2 rounded-[2px]",
        group ? "h-1 opacity-60" : "h-3",
        PART_STYLES[piece.part],
      )}
      style={{ left: `${left}%`, width: `${width}%` }}
    />
  );
}
