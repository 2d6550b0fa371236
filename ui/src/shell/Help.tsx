/** All keys that do something now, from their registry. */
import { Dialog } from "../components/Dialog";
import { type Shortcut, useShortcuts } from "../lib/shortcuts";

export function Help({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const groups = grouped(useShortcuts());
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Keyboard shortcuts" size="lg">
      <div className="gap-10 sm:columns-2">
        {groups.map(([group, shortcuts]) => (
          <section key={group} className="mb-5 break-inside-avoid">
            <h3 className="mb-1.5 text-xs font-semibold text-muted">{group}</h3>
            <dl className="flex flex-col">
              {shortcuts.map((shortcut) => (
                <div
                  key={shortcut.keys}
                  className="flex h-8 items-center justify-between gap-4 border-b border-line text-[13px]"
                >
                  <dt>{shortcut.label}</dt>
                  <dd className="flex gap-1">
                    <Keys keys={shortcut.keys} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

function grouped(shortcuts: Shortcut[]): [string, Shortcut[]][] {
  const groups = new Map<string, Shortcut[]>();
  for (const shortcut of shortcuts) {
    const group = groups.get(shortcut.group) ?? [];
    if (!group.some((other) => other.keys === shortcut.keys)) group.push(shortcut);
    groups.set(shortcut.group, group);
  }
  const last = ["Everywhere", "Go to"];
  return [...groups].sort(([a], [b]) => last.indexOf(a) - last.indexOf(b) || a.localeCompare(b));
}

const NAMES: Record<string, string> = {
  enter: "Enter",
  escape: "Esc",
  arrowdown: "↓",
  arrowup: "↑",
  arrowleft: "←",
  arrowright: "→",
  " ": "Space",
};

function keyName(key: string, withModifier: boolean): string {
  return NAMES[key] ?? (withModifier ? key.toUpperCase() : key);
}

export function Keys({ keys }: { keys: string }) {
  return keys.split(" ").map((key, index) => (
    <kbd
      key={index}
      className="min-w-5 rounded border border-line bg-sunken px-1.5 text-center font-sans text-xs leading-5 text-muted"
    >
      {key
        .split("+")
        .map((part, _, all) => (part === "mod" ? "Ctrl" : keyName(part, all.length > 1)))
        .join("-")}
    </kbd>
  ));
}
