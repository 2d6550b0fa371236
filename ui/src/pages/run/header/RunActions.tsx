/** The buttons of a run. What the server does not offer now is not shown, or says why. */
import { Ban, ChevronDown, GitFork, MoreHorizontal, Pause, Play, Repeat, RotateCcw } from "lucide-react";
import { Button } from "../../../components/Button";
import { Menu, MenuItem } from "../../../components/Menu";
import type { Ask, Verb } from "../actions/verbs";
import type { Run } from "../queries";
import { MoreItems } from "./MoreItems";

export function RunActions({ run, onAsk }: { run: Run; onAsk: (ask: Ask) => void }) {
  const can = (verb: Verb) => run.actions.includes(verb);
  const again = can("rerun") || can("retry") || can("fork");
  return (
    <div className="flex flex-wrap items-center gap-2">
      {can("resume") && (
        <Button icon={Play} onClick={() => onAsk({ verb: "resume" })}>
          Resume
        </Button>
      )}
      {can("pause") && (
        <Button icon={Pause} onClick={() => onAsk({ verb: "pause" })}>
          Pause
        </Button>
      )}
      {can("cancel") && (
        <Button variant="danger" icon={Ban} onClick={() => onAsk({ verb: "cancel" })}>
          Cancel
        </Button>
      )}
      {can("retry") && (
        <Button variant="primary" icon={RotateCcw} onClick={() => onAsk({ verb: "retry" })}>
          Retry failed
        </Button>
      )}
      {again && (
        <Menu
          trigger={
            <Button icon={Repeat}>
              Rerun <ChevronDown aria-hidden size={13} />
            </Button>
          }
        >
          <MenuItem icon={Repeat} disabled={!can("rerun")} onSelect={() => onAsk({ verb: "rerun" })}>
            Rerun from the start
          </MenuItem>
          <MenuItem icon={RotateCcw} disabled={!can("retry")} onSelect={() => onAsk({ verb: "retry" })}>
            Retry what failed
          </MenuItem>
          <MenuItem icon={GitFork} disabled={!can("fork")} onSelect={() => onAsk({ verb: "fork" })}>
            Fork with edited input
          </MenuItem>
        </Menu>
      )}
      <Menu trigger={<Button icon={MoreHorizontal} aria-label="More" />}>
        <MoreItems run={run} />
      </Menu>
    </div>
  );
}
