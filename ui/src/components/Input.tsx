/** Inputs. Inside a `Field` they take its label, hint and error; elsewhere give `aria-label`. */
import clsx from "clsx";
import { Check, Minus } from "lucide-react";
import { Checkbox as Radix } from "radix-ui";
import type { ComponentProps, ReactNode } from "react";
import { useId } from "react";
import { useField } from "./Field";

const BOX = clsx(
  "w-full min-w-0 rounded-md border border-line bg-surface text-[13px] text-text",
  "placeholder:text-faint hover:border-faint disabled:opacity-55 aria-invalid:border-failed",
);

function useNames(id: string | undefined) {
  const field = useField();
  return {
    id: id ?? field?.id,
    "aria-describedby": field?.describedBy,
    "aria-invalid": field?.invalid || undefined,
  };
}

export function Input({ className, id, ...rest }: ComponentProps<"input">) {
  return <input {...useNames(id)} className={clsx(BOX, "h-8 px-2.5", className)} {...rest} />;
}

export function Textarea({ className, id, rows = 4, ...rest }: ComponentProps<"textarea">) {
  return (
    <textarea
      {...useNames(id)}
      rows={rows}
      className={clsx(BOX, "px-2.5 py-1.5 leading-normal", className)}
      {...rest}
    />
  );
}

/** The browser's own select: it works with every keyboard, reader and phone. */
export function Select({ className, id, children, ...rest }: ComponentProps<"select">) {
  return (
    <select {...useNames(id)} className={clsx(BOX, "h-8 cursor-pointer px-2", className)} {...rest}>
      {children}
    </select>
  );
}

export function Checkbox({
  checked,
  onChange,
  label,
  hideLabel,
  disabled,
  id,
}: {
  checked: boolean | "indeterminate";
  onChange: (checked: boolean, shift: boolean) => void;
  label: ReactNode;
  hideLabel?: boolean;
  disabled?: boolean;
  id?: string;
}) {
  const own = useId();
  const name = id ?? own;
  return (
    <span className="inline-flex items-center gap-2 align-middle text-[13px]">
      <Radix.Root
        id={name}
        checked={checked}
        disabled={disabled}
        onClick={(event) => onChange(checked !== true, event.shiftKey)}
        className="flex size-4 shrink-0 items-center justify-center rounded border border-faint bg-surface disabled:opacity-55 data-[state=checked]:border-accent data-[state=indeterminate]:border-accent data-[state=checked]:bg-accent data-[state=indeterminate]:bg-accent"
      >
        <Radix.Indicator className="text-on-accent">
          {checked === "indeterminate" ? (
            <Minus aria-hidden size={12} strokeWidth={3} />
          ) : (
            <Check aria-hidden size={12} strokeWidth={3} />
          )}
        </Radix.Indicator>
      </Radix.Root>
      <label htmlFor={name} className={hideLabel ? "sr-only" : "cursor-pointer select-none"}>
        {label}
      </label>
    </span>
  );
}
