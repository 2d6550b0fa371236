/** A label, a hint and an error around an input. The input finds its id by `useField`. */
import clsx from "clsx";
import { createContext, type ReactNode, useContext, useId } from "react";

interface FieldIds {
  id: string;
  describedBy: string | undefined;
  invalid: boolean;
}

const Ids = createContext<FieldIds | null>(null);

export function useField(): FieldIds | null {
  return useContext(Ids);
}

export function Field({
  label,
  hint,
  error,
  required,
  hideLabel,
  className,
  children,
}: {
  label: ReactNode;
  hint?: ReactNode;
  error?: ReactNode;
  required?: boolean;
  hideLabel?: boolean;
  className?: string;
  children: ReactNode;
}) {
  const id = useId();
  const hintId = `${id}-hint`;
  const errorId = `${id}-error`;
  const describedBy = [hint && hintId, error && errorId].filter(Boolean).join(" ") || undefined;
  return (
    <Ids.Provider value={{ id, describedBy, invalid: Boolean(error) }}>
      <div className={clsx("flex min-w-0 flex-col gap-1", className)}>
        <label htmlFor={id} className={hideLabel ? "sr-only" : "text-[13px] font-medium"}>
          {label}
          {required && (
            <span className="text-failed" title="needed">
              {" "}
              *
            </span>
          )}
        </label>
        {children}
        {hint && (
          <div id={hintId} className="text-xs text-muted">
            {hint}
          </div>
        )}
        {error && (
          <div id={errorId} role="alert" className="text-xs text-failed">
            {error}
          </div>
        )}
      </div>
    </Ids.Provider>
  );
}
