/** Notices when the server wants to know who is asking. */
import { useSyncExternalStore } from "react";
import { api } from "../api/client";

let needed = false;
const listeners = new Set<() => void>();

export function askForToken(wanted: boolean): void {
  if (needed === wanted) return;
  needed = wanted;
  listeners.forEach((listener) => listener());
}

api.use({
  onResponse({ response }) {
    if (response.status === 401) askForToken(true);
  },
});

export function useTokenNeeded(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => needed,
  );
}
