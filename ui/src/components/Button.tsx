import clsx from "clsx";
import { LoaderCircle, type LucideIcon } from "lucide-react";
import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: "primary" | "secondary" | "ghost" | "danger";
  size?: "sm" | "md";
  icon?: LucideIcon;
  busy?: boolean;
  children?: ReactNode;
  ref?: Ref<HTMLButtonElement>;
}

const VARIANTS = {
  primary: "bg-accent text-on-accent border-transparent hover:brightness-110",
  secondary: "bg-surface text-text border-line hover:bg-sunken",
  ghost: "bg-transparent text-muted border-transparent hover:bg-sunken hover:text-text",
  danger: "bg-surface text-failed border-line hover:border-failed hover:bg-sunken",
};

/** The look of a button, for links that are to look like one. */
export function buttonClass(
  variant: NonNullable<ButtonProps["variant"]> = "secondary",
  size: NonNullable<ButtonProps["size"]> = "md",
): string {
  return clsx(
    "inline-flex select-none items-center justify-center gap-1.5 rounded-md border font-medium",
    "whitespace-nowrap transition-colors disabled:cursor-not-allowed disabled:opacity-55",
    "aria-disabled:cursor-not-allowed aria-disabled:opacity-55",
    size === "sm" ? "h-7 px-2 text-xs" : "h-8 px-3 text-[13px]",
    VARIANTS[variant],
  );
}

/** Without children, `aria-label` names it. */
export function Button({
  variant = "secondary",
  size = "md",
  icon: Icon,
  busy = false,
  className,
  children,
  disabled,
  type = "button",
  ...rest
}: ButtonProps) {
  const Shown = busy ? LoaderCircle : Icon;
  const bare = children === undefined || children === null;
  return (
    <button
      type={type}
      disabled={disabled || busy}
      className={clsx(
        buttonClass(variant, size),
        bare && (size === "sm" ? "w-7 !px-0" : "w-8 !px-0"),
        className,
      )}
      {...rest}
    >
      {Shown && (
        <Shown
          aria-hidden
          size={size === "sm" ? 13 : 15}
          className={clsx("shrink-0", busy && "motion-safe:animate-spin")}
        />
      )}
      {children}
    </button>
  );
}
