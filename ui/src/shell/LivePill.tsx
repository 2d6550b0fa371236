/** Says whether the page follows what happens, and stops and starts it. */
import clsx from "clsx";
import { Pause, Play } from "lucide-react";
import { live, useLiveState } from "../lib/live";

const WORDS = {
  live: { word: "Live", color: "text-done", dot: "bg-done" },
  reconnecting: { word: "Reconnecting", color: "text-waiting", dot: "bg-waiting" },
  paused: { word: "Paused", color: "text-muted", dot: "bg-faint" },
};

export function LivePill() {
  const state = useLiveState();
  const { word, color, dot } = WORDS[state];
  const paused = state === "paused";
  const Icon = paused ? Play : Pause;
  return (
    <span
      className={clsx(
        "flex h-7 items-center gap-1.5 rounded-full border border-line pl-2.5 pr-1 text-xs font-medium",
        color,
      )}
    >
      <span aria-hidden className={clsx("size-1.5 rounded-full", dot)} />
      <span role="status" aria-label={`Updates: ${word.toLowerCase()}`}>
        {word}
      </span>
      <button
        type="button"
        aria-label={paused ? "Follow changes again" : "Stop following changes"}
        title={paused ? "Follow changes again" : "Stop following changes"}
        onClick={() => (paused ? live.resume() : live.pause())}
        className="flex size-5 items-center justify-center rounded-full text-muted hover:bg-sunken hover:text-text"
      >
        <Icon aria-hidden size={12} />
      </button>
    </span>
  );
}
