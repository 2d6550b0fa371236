/** A part of a page with a heading of its own. */
import clsx from "clsx";
import type { ReactNode } from "react";
import { useId } from "react";

export function Card({
  title,
  extra,
  className,
  children,
}: {
  title: ReactNode;
  /** At the right of the heading, such as a link to all of it. */
  extra?: ReactNode;
  className?: string;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section
      aria-labelledby={id}
      className={clsx("min-w-0 overflow-clip rounded-lg border border-line bg-surface", className)}
    >
      <div className="flex h-10 items-center justify-between gap-3 border-b border-line px-4">
        <h2 id={id} className="text-[13px] font-semibold">
          {title}
        </h2>
        {extra}
      </div>
      {children}
    </section>
  );
}
