/** What a reader has chosen, kept in this browser. */
import { useCallback, useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
const parsed = new Map<string, { text: string | null; value: unknown }>();

function read<T>(name: string, fallback: T): T {
  const text = localStorage.getItem(`afl.${name}`);
  const known = parsed.get(name);
  if (known && known.text === text) return known.value as T;
  let value: unknown = fallback;
  try {
    if (text !== null) value = JSON.parse(text);
  } catch {
    value = fallback;
  }
  parsed.set(name, { text, value });
  return value as T;
}

export function setPref<T>(name: string, value: T): void {
  localStorage.setItem(`afl.${name}`, JSON.stringify(value));
  listeners.forEach((listener) => listener());
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", listener);
  };
}

/** A choice and the way to change it; other places that use the same one see the change. */
export function usePref<T>(name: string, fallback: T): [T, (value: T) => void] {
  const value = useSyncExternalStore(subscribe, () => read(name, fallback));
  const set = useCallback((next: T) => setPref(name, next), [name]);
  return [value, set];
}
