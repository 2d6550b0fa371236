/** What can be done to a step now. */
import { Check, GitFork, type LucideIcon, RotateCcw, SkipForward, XCircle } from "lucide-react";
import { Button } from "../../../components/Button";
import type { Ask, Verb } from "../actions/verbs";
import type { Step } from "../queries";

const BUTTONS: [Verb, string, LucideIcon][] = [
  ["retry", "Retry", RotateCcw],
  ["fork", "Fork from here", GitFork],
  ["continue", "Continue with a result", Check],
  ["skip", "Skip", SkipForward],
  ["fail", "Fail", XCircle],
];

export function StepActions({ step, onAsk }: { step: Step; onAsk: (ask: Ask) => void }) {
  const shown = BUTTONS.filter(([verb]) => step.actions.includes(verb));
  if (shown.length === 0) return null;
  return (
    <div className="flex flex-wrap gap-1.5">
      {shown.map(([verb, word, icon]) => (
        <Button
          key={verb}
          size="sm"
          icon={icon}
          variant={verb === "fail" ? "danger" : "secondary"}
          onClick={() => onAsk({ verb, step: step.row.path })}
        >
          {word}
        </Button>
      ))}
    </div>
  );
}
