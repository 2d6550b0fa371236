/**
 * A dialog over the page. The overlay is ours: the one of the library writes a style tag into the
 * page, which the content security policy forbids.
 */
import clsx from "clsx";
import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { type ReactNode, useRef } from "react";
import { Button } from "./Button";

export interface DialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: ReactNode;
  description?: ReactNode;
  footer?: ReactNode;
  size?: "sm" | "md" | "lg" | "xl";
  children?: ReactNode;
}

const INPUTS = "input:not([disabled]), select:not([disabled]), textarea:not([disabled])";
const SIZES = { sm: "max-w-md", md: "max-w-xl", lg: "max-w-3xl", xl: "max-w-6xl" };

export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  footer,
  size = "md",
  children,
}: DialogProps) {
  const body = useRef<HTMLDivElement>(null);
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <div aria-hidden className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content
          {...(description ? {} : { "aria-describedby": undefined })}
          onOpenAutoFocus={(event) => {
            // what is to be filled in, rather than the button that closes
            event.preventDefault();
            const first = body.current?.querySelector<HTMLElement>(INPUTS);
            (first ?? (event.currentTarget as HTMLElement)).focus();
          }}
          className={clsx(
            "fixed left-1/2 top-[10vh] z-50 flex max-h-[80vh] w-[calc(100vw-2rem)] -translate-x-1/2",
            "flex-col rounded-lg border border-line bg-raised shadow-2xl outline-none",
            SIZES[size],
          )}
        >
          <div className="flex items-start justify-between gap-4 px-5 pt-4">
            <div className="min-w-0">
              <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
              {description && (
                <Radix.Description className="mt-1 text-[13px] text-muted">
                  {description}
                </Radix.Description>
              )}
            </div>
            <Radix.Close asChild>
              <Button variant="ghost" size="sm" icon={X} aria-label="Close" />
            </Radix.Close>
          </div>
          <div
            ref={body}
            tabIndex={0}
            className="min-h-0 flex-1 overflow-y-auto px-5 py-4 outline-none focus-visible:shadow-[inset_0_0_0_2px_var(--focus)]"
          >
            {children}
          </div>
          {footer && (
            <div className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-5 py-3">
              {footer}
            </div>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
