/** The edge by which a panel is made wider, with the mouse or the arrow keys. */
import type { KeyboardEvent, PointerEvent } from "react";

const STEP = 32;

export function Resizer({
  width,
  least,
  most,
  onChange,
}: {
  width: number;
  least: number;
  most: number;
  onChange: (width: number) => void;
}) {
  const set = (next: number) => onChange(Math.round(Math.min(Math.max(next, least), most)));
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    if (event.buttons !== 1) return;
    set(document.documentElement.clientWidth - event.clientX);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    set(width + (event.key === "ArrowLeft" ? STEP : -STEP));
  };
  return (
    <div
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the panel"
      aria-valuenow={width}
      aria-valuemin={least}
      aria-valuemax={most}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={key}
      className="absolute inset-y-0 -left-1 z-20 w-2 cursor-col-resize touch-none hover:bg-accent/30 focus-visible:bg-accent/30"
    />
  );
}
