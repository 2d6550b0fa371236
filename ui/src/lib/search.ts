/** What a page shows is in its address, so that it can be linked and gone back to. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

type Patch<T> = Partial<{ [K in keyof T]: T[K] | undefined | null }>;

/**
 * The search parameters and a way to change some of them. Empty values leave the address.
 * With `replace`, the change is no step of the back button: for what is typed.
 */
export function useSearchState<T extends object>(): [
  Partial<T>,
  (patch: Patch<T>, options?: { replace?: boolean }) => void,
] {
  const search = useSearch({ strict: false } as never) as unknown as Partial<T>;
  const navigate = useNavigate();
  const set = useCallback(
    (patch: Patch<T>, options?: { replace?: boolean }) => {
      void navigate({
        to: ".",
        search: ((before: Record<string, unknown>) => merged(before, patch)) as never,
        replace: options?.replace ?? false,
        resetScroll: false,
      });
    },
    [navigate],
  );
  return [search, set];
}

/** Exported for its tests. */
export function merged(before: Record<string, unknown>, patch: object): Record<string, unknown> {
  const after: Record<string, unknown> = { ...before, ...patch };
  for (const [name, value] of Object.entries(after)) {
    const empty = Array.isArray(value) && value.length === 0;
    if (value === undefined || value === null || value === "" || value === false || empty) {
      delete after[name];
    }
  }
  return after;
}
