/** The bar of one row on the time axis. */
import clsx from "clsx";
import type { Row } from "../queries";
import type { Scale } from "./scale";
import { type BarPart, PART_STYLES, partWords, rowParts } from "./spans";

export function TimeBar({ row, scale, now }: { row: Row; scale: Scale; now: number }) {
  const parts = rowParts(row, now);
  const words = partWords(parts);
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
