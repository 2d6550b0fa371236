/** Tabs whose choice is the caller's, who keeps it in the address. */
import clsx from "clsx";
import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

export interface Tab {
  value: string;
  label: ReactNode;
  count?: ReactNode;
}

export function Tabs({
  tabs,
  value,
  onChange,
  label,
  fill = false,
  children,
}: {
  tabs: Tab[];
  value: string;
  onChange: (value: string) => void;
  /** Names the list of tabs for those who cannot see it. */
  label?: string;
  /** As high as there is room, for content that scrolls by itself. */
  fill?: boolean;
  /** The content of the tab that is open. */
  children?: ReactNode;
}) {
  return (
    <Radix.Root value={value} onValueChange={onChange} className={clsx("flex min-w-0 flex-col", fill && "min-h-0 flex-1")}>
      <Radix.List
        aria-label={label}
        className="flex min-w-0 gap-1 overflow-x-auto border-b border-line"
      >
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className={clsx(
              "-mb-px flex h-9 shrink-0 items-center gap-1.5 border-b-2 border-transparent px-3",
              "text-[13px] text-muted hover:text-text focus-visible:-outline-offset-2",
              "data-[state=active]:border-accent data-[state=active]:font-medium",
              "data-[state=active]:text-text",
            )}
          >
            {tab.label}
            {tab.count !== undefined && (
              <span className="rounded-full bg-sunken px-1.5 text-xs tabular-nums text-muted">
                {tab.count}
              </span>
            )}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content
          key={tab.value}
          value={tab.value}
          forceMount
          hidden={tab.value !== value}
          className={fill ? "min-h-0 min-w-0 flex-1 flex-col data-[state=active]:flex" : "min-w-0 pt-4"}
        >
          {tab.value === value && children}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
