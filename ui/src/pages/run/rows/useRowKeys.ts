/** Keys that walk the rows: j and k anywhere, the arrows in the list, Enter. */
import type { KeyboardEvent } from "react";
import { useShortcut } from "../../../lib/shortcuts";
import { parentOf } from "./path";
import type { RowStore } from "./store";

interface Walk {
  store: RowStore;
  cursor: string | undefined;
  setCursor: (path: string) => void;
  selected: string | undefined;
  onSelect: (path: string) => void;
  scrollTo: (index: number) => void;
}

export function useRowKeys({ store, cursor, setCursor, selected, onSelect, scrollTo }: Walk) {
  const go = (by: number) => {
    const from = cursor === undefined ? null : store.indexOf(cursor);
    const index = Math.min(Math.max((from ?? (by > 0 ? -1 : 1)) + by, 0), store.size - 1);
    const path = store.at(index).row?.path;
    scrollTo(index);
    if (path === undefined) return;
    setCursor(path);
    // an open panel goes along
    if (selected !== undefined) onSelect(path);
  };
  const row = () => {
    const index = cursor === undefined ? null : store.indexOf(cursor);
    return index === null ? undefined : store.at(index).row;
  };
  const into = () => {
    const at = row();
    if (!at?.has_children) return;
    if (store.open.has(at.path)) go(1);
    else store.toggle(at.path, true);
  };
  const out = () => {
    const at = row();
    if (!at) return;
    if (store.open.has(at.path)) store.toggle(at.path, false);
    else if (store.indexOf(parentOf(at.path)) !== null) setCursor(parentOf(at.path));
  };
  const group = { group: "Steps" };
  useShortcut("j", "Next row", () => go(1), group);
  useShortcut("k", "Previous row", () => go(-1), group);
  useShortcut("enter", "Open the panel of the row", () => cursor && onSelect(cursor), group);
  const arrows: Record<string, () => void> = {
    ArrowDown: () => go(1),
    ArrowUp: () => go(-1),
    ArrowRight: into,
    ArrowLeft: out,
  };
  return (event: KeyboardEvent) => {
    const action = arrows[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };
}
