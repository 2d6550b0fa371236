/** The frame of a page: its title, what can be done here, and the content. */
import clsx from "clsx";
import type { ReactNode } from "react";
import { useEffect } from "react";
import { useLiveState } from "../lib/live";

export interface PageProps {
  title: ReactNode;
  /** For the tab of the browser, where the title is more than text. */
  name?: string;
  subtitle?: ReactNode;
  actions?: ReactNode;
  /** For pages that follow what happens: says beside the title when they do not. */
  live?: boolean;
  /** As high as the window, for pages whose content scrolls by itself. */
  fill?: boolean;
  children: ReactNode;
}

export function Page({ title, name, subtitle, actions, live, fill, children }: PageProps) {
  const text = name ?? (typeof title === "string" ? title : undefined);
  useEffect(() => {
    if (text) document.title = `${text} · AgentFlow`;
  }, [text]);
  return (
    <div
      className={clsx("flex min-w-0 flex-col gap-4 px-6 py-5", fill ? "h-full" : "min-h-full")}
    >
      <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2">
        <div className="min-w-0">
          <h1 className="flex min-w-0 flex-wrap items-center gap-2 text-xl font-semibold tracking-tight">
            {title}
            {live && <NotLive />}
          </h1>
          {subtitle && <div className="mt-0.5 text-[13px] text-muted">{subtitle}</div>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

function NotLive() {
  const state = useLiveState();
  if (state !== "paused") return null;
  return <span className="text-xs font-normal text-waiting">updates are paused</span>;
}
