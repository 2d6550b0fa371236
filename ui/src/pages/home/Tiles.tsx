/** The few numbers that say whether somebody has to do something. */
import { Link } from "@tanstack/react-router";
import clsx from "clsx";
import { CircleX, Hand, Hourglass, Layers, type LucideIcon, Server, Wallet } from "lucide-react";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { count, money, plural } from "../../lib/format";
import { Elapsed } from "../../lib/time";

type Home = Schemas["Home"];

export function Tiles({ home }: { home: Home }) {
  const { spend } = home;
  return (
    <ul className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6">
      <Tile
        to="/runs"
        search={{ state: "failed" }}
        icon={CircleX}
        name="Failing now"
        value={count(home.failing.length)}
        tone={home.failing.length ? "text-failed" : undefined}
        note={`${count(home.counts["failed"] ?? 0)} failed in all`}
      />
      <Tile
        to="/runs"
        search={{ state: "running" }}
        icon={Hourglass}
        name="Stuck now"
        value={count(home.stuck.length)}
        tone={home.stuck.length ? "text-waiting" : undefined}
        note={`of ${plural(home.counts["running"] ?? 0, "running run")}`}
      />
      <Tile
        to="/inbox"
        icon={Hand}
        name="Needs a person"
        value={count(home.needs_you)}
        tone={home.needs_you ? "text-needs-you" : undefined}
        note={home.needs_you ? "Answer in the inbox" : "Nobody is asked"}
      />
      <Tile
        to="/queues"
        icon={Layers}
        name="Queue"
        value={count(home.queue_depth)}
        note={
          <>
            {home.oldest_ready_at ? (
              <>
                oldest waits <Elapsed from={home.oldest_ready_at} />
              </>
            ) : (
              "nothing waits"
            )}
            {home.dead_letters > 0 && (
              <span className="block text-dead-letter">
                {plural(home.dead_letters, "dead letter")}
              </span>
            )}
          </>
        }
      />
      <Tile
        to="/workers"
        icon={Server}
        name="Workers"
        value={count(home.workers_live)}
        tone={home.workers_live === 0 ? "text-lost" : undefined}
        note={
          home.workers_stale > 0 ? (
            <span className="text-lost">{count(home.workers_stale)} stale</span>
          ) : home.workers_live === 0 ? (
            "none is there"
          ) : (
            "all answer"
          )
        }
      />
      <Tile
        to="/cost"
        icon={Wallet}
        name="Spend today"
        value={money(spend.today_usd)}
        note={
          <>
            {money(spend.week_usd)} in 7 days
            {spend.unpriced > 0 && (
              <span className="block">{count(spend.unpriced)} without a price</span>
            )}
          </>
        }
      />
    </ul>
  );
}

function Tile({
  to,
  search,
  icon: Icon,
  name,
  value,
  note,
  tone,
}: {
  to: "/runs" | "/inbox" | "/queues" | "/workers" | "/cost";
  search?: Record<string, string>;
  icon: LucideIcon;
  name: string;
  value: ReactNode;
  note: ReactNode;
  tone?: string;
}) {
  return (
    <li className="min-w-0">
      <Link
        to={to}
        search={search ?? {}}
        className="flex h-full flex-col gap-1 rounded-lg border border-line bg-surface px-4 py-3 hover:border-faint"
      >
        <span className="flex items-center gap-1.5 text-xs text-muted">
          <Icon aria-hidden size={13} className={tone} />
          {name}
        </span>
        <span className={clsx("text-2xl font-semibold leading-tight tabular-nums", tone)}>
          {value}
        </span>
        <span className="text-xs text-muted">{note}</span>
      </Link>
    </li>
  );
}
