/** The turns of agents in a run, and the one that is open. */
import clsx from "clsx";
import { Empty, QueryState } from "../../../components/States";
import { cost, count } from "../../../lib/format";
import { Elapsed } from "../../../lib/time";
import { type Turn, useTurns } from "../queries";
import { useRunSearch } from "../search";
import { TranscriptPanel } from "../transcript/TranscriptPanel";

export function AgentsTab({ run }: { run: string }) {
  const turns = useTurns(run);
  return (
    <QueryState
      query={turns}
      label="Reading the turns"
      empty={
        <div className="p-6">
          <Empty
            title="No agent has worked on this run"
            hint="When a step is a prompt or an agent takes a turn, its conversation, tokens and price are here."
          />
        </div>
      }
    >
      {(data) => <Turns turns={data} />}
    </QueryState>
  );
}

function Turns({ turns }: { turns: Turn[] }) {
  const [search, patch] = useRunSearch();
  const open = turns.find((turn) => turn.id === search.turn) ?? turns[0];
  const total = turns.reduce((sum, turn) => sum + turn.cost_usd, 0);
  const unpriced = turns.reduce((sum, turn) => sum + turn.unpriced, 0);
  const tokens = turns.reduce((sum, turn) => sum + turn.tokens, 0);
  return (
    <div className="flex min-h-0 flex-1">
      <nav aria-label="Turns" className="flex w-72 shrink-0 flex-col border-r border-line">
        <ul className="min-h-0 flex-1 overflow-y-auto">
          {turns.map((turn) => (
            <li key={turn.id}>
              <button
                aria-current={turn.id === open?.id}
                onClick={() => patch({ turn: turn.id })}
                className={clsx(
                  "flex w-full flex-col gap-0.5 border-b border-line px-4 py-2 text-left text-[13px]",
                  turn.id === open?.id ? "bg-accent-soft" : "hover:bg-sunken",
                )}
              >
                <span className="flex items-baseline gap-2">
                  <span className="min-w-0 flex-1 truncate font-medium">{turn.agent}</span>
                  <span className="text-xs text-muted">{turn.outcome ?? turn.state}</span>
                </span>
                <span className="truncate text-xs text-muted">{turn.step ?? turn.instruction}</span>
                <span className="flex gap-3 text-xs tabular-nums text-muted">
                  <span>{count(turn.tokens)} tokens</span>
                  <span>{cost(turn.cost_usd, turn.unpriced)}</span>
                  {(turn.closed_at ?? turn.outcome === null) && (
                    <Elapsed from={turn.created_at} to={turn.closed_at} />
                  )}
                </span>
              </button>
            </li>
          ))}
        </ul>
        <p className="border-t border-line px-4 py-2 text-xs tabular-nums text-muted">
          {count(tokens)} tokens · {cost(total, unpriced)} in all
        </p>
      </nav>
      <div className="min-h-0 min-w-0 flex-1 overflow-y-auto p-4" tabIndex={0} role="region" aria-label="Transcript">
        {open && <TranscriptPanel key={open.id} turn={open.id} />}
      </div>
    </div>
  );
}
