/** One vocabulary of states on every page: a colour, an icon and a word, never colour alone. */
import clsx from "clsx";
import {
  Ban,
  Circle,
  CircleCheck,
  CircleX,
  Hand,
  Hourglass,
  Inbox,
  LoaderCircle,
  type LucideIcon,
  Pause,
  SkipForward,
  Unplug,
} from "lucide-react";

export interface StateInfo {
  word: string;
  icon: LucideIcon;
  /** The name of a colour token: `var(--${color})`, `text-${color}`. */
  color: string;
}

const STATES: Record<string, StateInfo> = {
  created: { word: "Created", icon: Circle, color: "queued" },
  queued: { word: "Queued", icon: Circle, color: "queued" },
  waiting: { word: "Waiting", icon: Hourglass, color: "waiting" },
  paused: { word: "Paused", icon: Pause, color: "waiting" },
  needs_you: { word: "Needs you", icon: Hand, color: "needs-you" },
  running: { word: "Running", icon: LoaderCircle, color: "running" },
  done: { word: "Done", icon: CircleCheck, color: "done" },
  completed: { word: "Completed", icon: CircleCheck, color: "done" },
  failed: { word: "Failed", icon: CircleX, color: "failed" },
  skipped: { word: "Skipped", icon: SkipForward, color: "skipped" },
  canceled: { word: "Canceled", icon: Ban, color: "canceled" },
  lost: { word: "Lost", icon: Unplug, color: "lost" },
  dead_letter: { word: "Dead letter", icon: Inbox, color: "dead-letter" },
};

const COLORS: Record<string, string> = {
  queued: "text-queued",
  waiting: "text-waiting",
  "needs-you": "text-needs-you",
  running: "text-running",
  done: "text-done",
  failed: "text-failed",
  skipped: "text-skipped",
  canceled: "text-canceled",
  lost: "text-lost",
  "dead-letter": "text-dead-letter",
};

export function stateInfo(state: string): StateInfo {
  const known = STATES[state];
  if (known) return known;
  const word = state.replaceAll("_", " ");
  return { word: word.charAt(0).toUpperCase() + word.slice(1), icon: Circle, color: "queued" };
}

/** The class that gives text the colour of a state. */
export function stateText(state: string): string {
  return COLORS[stateInfo(state).color] ?? "text-queued";
}

export function StateBadge({
  state,
  label,
  size = "md",
}: {
  state: string;
  label?: string;
  size?: "sm" | "md";
}) {
  const { word, icon: Icon } = stateInfo(state);
  return (
    <span
      data-state-word={state}
      className={clsx(
        "inline-flex items-center whitespace-nowrap align-middle font-medium",
        size === "sm" ? "gap-1 text-xs" : "gap-1.5 text-[13px]",
        stateText(state),
      )}
    >
      <Icon
        aria-hidden
        size={size === "sm" ? 12 : 14}
        className={clsx("shrink-0", state === "running" && "motion-safe:animate-spin-slow")}
      />
      {label ?? word}
    </span>
  );
}
