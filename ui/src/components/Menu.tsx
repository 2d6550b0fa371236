/** A menu behind a button: `<Menu trigger={<Button>More</Button>}><MenuItem …/></Menu>`. */
import clsx from "clsx";
import { Check, type LucideIcon } from "lucide-react";
import { DropdownMenu as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";

export function Menu({
  trigger,
  align = "end",
  children,
}: {
  trigger: ReactElement;
  align?: "start" | "center" | "end";
  children: ReactNode;
}) {
  // not modal: the modal kind writes a style tag into the page
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className="z-50 max-h-[70vh] min-w-44 max-w-80 overflow-y-auto rounded-md border border-line bg-raised p-1 shadow-lg"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

const ITEM = clsx(
  "flex cursor-default select-none items-center gap-2 rounded px-2 py-1.5 text-[13px] outline-none",
  "data-[highlighted]:bg-sunken data-[disabled]:opacity-55",
);

export function MenuItem({
  icon: Icon,
  danger,
  hint,
  children,
  ...rest
}: Radix.DropdownMenuItemProps & { icon?: LucideIcon; danger?: boolean; hint?: ReactNode }) {
  return (
    <Radix.Item className={clsx(ITEM, danger && "text-failed")} {...rest}>
      {Icon && <Icon aria-hidden size={14} className="shrink-0" />}
      <span className="min-w-0 flex-1 truncate">{children}</span>
      {hint && <span className="text-xs text-muted">{hint}</span>}
    </Radix.Item>
  );
}

export function MenuCheck({ children, ...rest }: Radix.DropdownMenuCheckboxItemProps) {
  return (
    <Radix.CheckboxItem
      className={ITEM}
      onSelect={(event) => event.preventDefault()}
      {...rest}
    >
      <span className="flex size-4 items-center justify-center">
        <Radix.ItemIndicator>
          <Check aria-hidden size={14} />
        </Radix.ItemIndicator>
      </span>
      {children}
    </Radix.CheckboxItem>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return (
    <Radix.Label className="px-2 pb-1 pt-1.5 text-xs font-medium text-muted">{children}</Radix.Label>
  );
}

export function MenuSeparator() {
  return <Radix.Separator className="my-1 h-px bg-line" />;
}
