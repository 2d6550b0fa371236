import { Switch } from "radix-ui";
import { type ReactNode, useId } from "react";

/** A switch with its label beside it. */
export function Toggle({
  checked,
  onChange,
  label,
  disabled,
}: {
  checked: boolean;
  onChange: (checked: boolean) => void;
  label: ReactNode;
  disabled?: boolean;
}) {
  const id = useId();
  return (
    <span className="inline-flex items-center gap-2 align-middle text-[13px]">
      <Switch.Root
        id={id}
        checked={checked}
        onCheckedChange={onChange}
        disabled={disabled}
        className="relative h-[18px] w-8 shrink-0 rounded-full border border-faint bg-sunken transition-colors disabled:opacity-55 data-[state=checked]:border-accent data-[state=checked]:bg-accent"
      >
        <Switch.Thumb className="block size-3 translate-x-[2px] rounded-full bg-faint transition-transform data-[state=checked]:translate-x-[16px] data-[state=checked]:bg-on-accent" />
      </Switch.Root>
      <label htmlFor={id} className="cursor-pointer select-none">
        {label}
      </label>
    </span>
  );
}
