/** What happened in the run, the newest first. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { api, unwrap } from "../../../api/client";
import { Button } from "../../../components/Button";
import { stateText } from "../../../components/StateBadge";
import { Empty, QueryState } from "../../../components/States";
import { dateTime } from "../../../lib/format";
import { topic } from "../queries";
import type { Patch } from "../search";
import { Sentence } from "../../../components/Sentence";

/** The colours of what happened are those of the states that it led to. */
const WORDS: Record<string, string> = {
  finished: "done",
  completed: "done",
  failed: "failed",
  lost: "lost",
  started: "running",
  claimed: "running",
  retried: "waiting",
  paused: "waiting",
  canceled: "canceled",
};

export function EventsTab({ run, patch }: { run: string; patch: Patch }) {
  const events = useInfiniteQuery({
    queryKey: [topic(run), "events"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/runs/{run}/events", {
          params: { path: { run }, query: { cursor: pageParam, limit: 100 } },
        }),
      ),
    getNextPageParam: (page) => page.next ?? undefined,
    select: (data) => data.pages.flatMap((page) => page.items),
  });
  return (
    <div className="min-h-0 flex-1 overflow-auto" tabIndex={0} role="region" aria-label="Events">
      <QueryState
        query={events}
        label="Reading the events"
        empty={
          <div className="p-6">
            <Empty title="Nothing has happened yet" />
          </div>
        }
      >
        {(items) => (
          <table className="w-full text-[13px]">
            <thead className="sticky top-0 z-10 bg-surface text-left text-[11px] text-muted">
              <tr className="border-b border-line">
                <th className="px-4 py-1.5 font-medium">Time</th>
                <th className="px-2 font-medium">Event</th>
                <th className="px-2 font-medium">What happened</th>
                <th className="px-4 font-medium">Worker</th>
              </tr>
            </thead>
            <tbody>
              {items.map((event, at) => (
                <tr key={at} className="border-b border-line/60 align-top">
                  <td className="whitespace-nowrap px-4 py-1.5 text-xs tabular-nums text-muted" title={dateTime(event.at, "utc")}>
                    {dateTime(event.at)}.{event.at.slice(20, 23).padEnd(3, "0")}
                  </td>
                  <td className={`whitespace-nowrap px-2 py-1.5 font-medium ${stateText(WORDS[event.kind] ?? "queued")}`}>
                    {event.kind.replaceAll("_", " ")}
                  </td>
                  <td className="min-w-48 break-words px-2 py-1.5">
                    <Sentence
                      text={event.text}
                      step={event.step}
                      onStep={(step) => patch({ step }, false)}
                    />
                  </td>
                  <td className="max-w-48 truncate px-4 py-1.5 font-mono text-xs text-muted" title={event.worker ?? undefined}>
                    {event.worker}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </QueryState>
      {events.hasNextPage && (
        <div className="flex justify-center p-3">
          <Button busy={events.isFetchingNextPage} onClick={() => void events.fetchNextPage()}>
            Earlier events
          </Button>
        </div>
      )}
    </div>
  );
}
