/** Every key that does something is registered here, which is what `?` shows. */
import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
  keys: string;
  label: string;
  group: string;
}

interface Entry extends Shortcut {
  run: (event: KeyboardEvent) => void;
}

const entries = new Set<Entry>();
const listeners = new Set<() => void>();
let listed: Shortcut[] = [];
let prefix: { key: string; at: number } | null = null;

function changed(): void {
  listed = [...entries].map(({ keys, label, group }) => ({ keys, label, group }));
  listeners.forEach((listener) => listener());
}

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
    ? !(target instanceof HTMLInputElement && target.type === "checkbox")
    : false;
}

/** `g r` is two keys one after the other; `mod+k` is Ctrl-K, or Cmd-K on a Mac. */
function name(event: KeyboardEvent): string {
  const mod = event.ctrlKey || event.metaKey ? "mod+" : "";
  const alt = event.altKey ? "alt+" : "";
  const key = event.key.length === 1 ? event.key : event.key.toLowerCase();
  return mod + alt + key;
}

/** Dialogs and menus have their own keys; the page behind them has none. */
function covered(): boolean {
  return document.querySelector('[role="dialog"],[role="alertdialog"],[role="menu"]') !== null;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented) return;
  const pressed = name(event);
  const modified = pressed.startsWith("mod+") || pressed.startsWith("alt+");
  if (!modified && (typing(event.target) || covered())) return;
  const before = prefix && Date.now() - prefix.at < 1200 ? `${prefix.key} ${pressed}` : null;
  prefix = null;
  const all = [...entries].reverse();
  const found =
    (before && all.find((entry) => entry.keys === before)) ||
    all.find((entry) => entry.keys === pressed);
  if (found) {
    if (pressed === "enter" && interactive(event.target)) return;
    event.preventDefault();
    found.run(event);
  } else if (all.some((entry) => entry.keys.startsWith(`${pressed} `))) {
    prefix = { key: pressed, at: Date.now() };
  }
}

/** Enter on a link or a button is that link's or button's own. */
function interactive(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("a,button,summary") !== null;
}

if (typeof window !== "undefined") window.addEventListener("keydown", onKey);

export function useShortcut(
  keys: string,
  label: string,
  handler: (event: KeyboardEvent) => void,
  options: { group?: string; enabled?: boolean } = {},
): void {
  const latest = useRef(handler);
  latest.current = handler;
  const { group = "This page", enabled = true } = options;
  useEffect(() => {
    if (!enabled) return;
    const entry: Entry = { keys, label, group, run: (event) => latest.current(event) };
    entries.add(entry);
    changed();
    return () => {
      entries.delete(entry);
      changed();
    };
  }, [keys, label, group, enabled]);
}

export function useShortcuts(): Shortcut[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => listed,
  );
}
