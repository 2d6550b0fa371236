/** A turn of an agent as it went: what it was told, what it said, what tools answered, the price. */
import { api } from "../../../api/client";
import { JsonView } from "../../../components/JsonView";
import { StateBadge } from "../../../components/StateBadge";
import { Empty, QueryState } from "../../../components/States";
import { count, money, plural } from "../../../lib/format";
import { useLive, useLiveState, useSpoken } from "../../../lib/live";
import { useApi } from "../../../lib/query";
import type { Spoken } from "../../../lib/spoken";
import type { Transcript } from "../queries";
import { Calls } from "./Calls";
import { TranscriptEntry } from "./TranscriptEntry";
import { numbered } from "./numbering";
import { streamed } from "./streaming";

export function TranscriptPanel({ turn }: { turn: string }) {
  useLive([`turn:${turn}`]);
  const transcript = useApi([`turn:${turn}`, "transcript"], (signal) =>
    api.GET("/api/v1/turns/{turn}", { params: { path: { turn } }, signal }),
  );
  const spoken = useSpoken(turn, transcript.data?.outcome === null);
  return (
    <QueryState query={transcript} label="Reading the transcript">
      {(data) => <TranscriptBody transcript={data} spoken={spoken} />}
    </QueryState>
  );
}

function TranscriptBody({ transcript, spoken }: { transcript: Transcript; spoken: Spoken | undefined }) {
  const { lines, calls, deliverable } = transcript;
  const now = streamed(transcript, spoken);
  // in one list: a line that is committed takes the place of the one that was streamed
  const entries = numbered([...lines, ...now]);
  const streams = useLiveState() === "live" && now.length > 0 && !spoken?.over;
  return (
    <div className="flex min-w-0 flex-col gap-4 text-[13px]">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <span className="font-medium">{transcript.name}</span>
        <StateBadge state={stateWord(transcript)} label={transcript.outcome ?? transcript.state} size="sm" />
        <span className="tabular-nums text-muted">{plural(calls.length, "request")}</span>
        <span className="tabular-nums text-muted">{count(transcript.tokens)} tokens</span>
        <span className="tabular-nums">{money(transcript.cost_usd)}</span>
      </div>
      {transcript.system && !lines.some((line) => line.kind === "system") && (
        <TranscriptEntry entry={{ line: systemLine(transcript.system), number: null }} call={undefined} />
      )}
      {entries.length === 0 && <Empty title="Nothing was said yet" />}
      <ol className="flex flex-col gap-2">
        {entries.map((entry, at) => (
          <li key={at}>
            <TranscriptEntry
              entry={entry}
              call={firstOfRequest(entries, at) ? callOf(transcript, entry.line.request) : undefined}
              streams={streams && at === entries.length - 1}
            />
          </li>
        ))}
      </ol>
      {/* that somebody speaks is told, and not every word */}
      <p role="status" className="sr-only">
        {streams ? "The model is answering." : ""}
      </p>
      {deliverable && (
        <section>
          <h3 className="mb-1 text-xs font-medium text-muted">Deliverable</h3>
          <JsonView value={deliverable} label="Deliverable" />
        </section>
      )}
      {calls.length > 0 && <Calls calls={calls} cost={transcript.cost_usd} />}
    </div>
  );
}

const systemLine = (text: string): Transcript["lines"][number] => ({
  kind: "system",
  text,
  tool: null,
  arguments: null,
  failed: false,
  request: null,
});

type Entries = ReturnType<typeof numbered>;

/** The price of a request is told once, where its answer begins. */
function firstOfRequest(entries: Entries, at: number): boolean {
  const request = entries[at]?.line.request ?? null;
  return request !== null && !entries.slice(0, at).some((one) => one.line.request === request);
}

const callOf = (transcript: Transcript, request: number | null) =>
  transcript.calls.find((one) => one.number === request);

/** The states of turns in the words of steps. */
function stateWord({ state, outcome }: Transcript): string {
  if (outcome === null) return state === "suspended" ? "waiting" : "running";
  if (["ok", "done", "success", "completed"].includes(outcome)) return "done";
  return ["canceled", "stopped"].includes(outcome) ? "canceled" : "failed";
}
