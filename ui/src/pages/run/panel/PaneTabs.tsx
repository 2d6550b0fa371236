/** Tabs that fill what is left of the height, so that what is inside can scroll by itself. */
import clsx from "clsx";
import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

export interface PaneTab {
  value: string;
  label: ReactNode;
  mark?: ReactNode;
}

export function PaneTabs({
  tabs,
  value,
  onChange,
  label,
  dense,
  beside,
  children,
}: {
  tabs: PaneTab[];
  value: string;
  onChange: (value: string) => void;
  label: string;
  dense?: boolean;
  /** what stands to the right of whatever tab is open */
  beside?: ReactNode;
  children: ReactNode;
}) {
  return (
    <Radix.Root
      value={value}
      onValueChange={onChange}
      activationMode="manual"
      className="flex min-h-0 min-w-0 flex-1 flex-col"
    >
      <Radix.List
        aria-label={label}
        className={clsx(
          "flex min-w-0 shrink-0 overflow-x-auto overflow-y-hidden border-b border-line",
          dense ? "px-2" : "mt-2 px-4",
        )}
      >
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className={clsx(
              "flex shrink-0 items-center gap-1.5 border-b-2 border-transparent text-[13px] text-muted",
              "hover:text-text focus-visible:-outline-offset-2 data-[state=active]:border-accent",
              "data-[state=active]:font-medium data-[state=active]:text-text",
              dense ? "h-8 px-2" : "h-9 px-2.5",
            )}
          >
            {tab.label}
            {tab.mark}
          </Radix.Trigger>
        ))}
      </Radix.List>
      <div className="flex min-h-0 min-w-0 flex-1 bg-surface">
        <Radix.Content
          key={value}
          value={value}
          tabIndex={-1}
          className="flex min-h-0 min-w-0 flex-1 flex-col outline-none"
        >
          {children}
        </Radix.Content>
        {beside}
      </div>
    </Radix.Root>
  );
}
