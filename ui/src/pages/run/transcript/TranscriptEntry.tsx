/** A message, a tool call, its answer, or a note. */
import clsx from "clsx";
import {
  Bot,
  Brain,
  CircleX,
  FileCheck,
  FileText,
  Hourglass,
  LoaderCircle,
  type LucideIcon,
  Settings2,
  StickyNote,
  User,
  Wrench,
} from "lucide-react";
import { lazy, memo, Suspense, useDeferredValue, useState } from "react";
import { JsonView } from "../../../components/JsonView";
import { count, money } from "../../../lib/format";
import type { Transcript } from "../queries";
import { argumentsOf, type Entry } from "./numbering";

const KINDS: Record<string, { word: string; icon: LucideIcon; edge: string }> = {
  system: { word: "System", icon: Settings2, edge: "border-l-line" },
  user: { word: "User", icon: User, edge: "border-l-needs-you" },
  assistant: { word: "Assistant", icon: Bot, edge: "border-l-running" },
  tool_call: { word: "Tool call", icon: Wrench, edge: "border-l-waiting" },
  tool_result: { word: "Tool answer", icon: Wrench, edge: "border-l-waiting" },
  context: { word: "Context", icon: FileText, edge: "border-l-line" },
  thinking: { word: "Thinking", icon: Brain, edge: "border-l-line" },
  wait: { word: "Waits", icon: Hourglass, edge: "border-l-waiting" },
  error: { word: "Error", icon: CircleX, edge: "border-l-failed" },
  note: { word: "Note", icon: StickyNote, edge: "border-l-line" },
  deliverable: { word: "Deliverable", icon: FileCheck, edge: "border-l-done" },
};
const LONG = 1200;
const Markdown = lazy(() => import("react-markdown"));

type Call = Transcript["calls"][number];

interface EntryProps {
  entry: Entry;
  call: Call | undefined;
  /** Whether the model is still saying it. */
  streams?: boolean;
}

/** Lines do not change once they are committed: those above one that grows are left alone. */
export const TranscriptEntry = memo(
  Drawn,
  (before, now) =>
    before.entry.line === now.entry.line &&
    before.entry.number === now.entry.number &&
    before.call === now.call &&
    before.streams === now.streams,
);

function Drawn({ entry, call, streams = false }: EntryProps) {
  const { line, number } = entry;
  const { word, icon: Icon, edge } = KINDS[line.kind] ?? KINDS.note!;
  const written = argumentsOf(line);
  return (
    <article
      className={clsx(
        "min-w-0 rounded-md border border-l-[3px] border-line bg-surface px-3 py-2",
        line.failed ? "border-l-failed" : edge,
      )}
    >
      <header className="mb-1 flex flex-wrap items-center gap-x-2 text-xs text-muted">
        <Icon aria-hidden size={13} />
        <span className="font-medium">
          {word}
          {number !== null && ` ${number}`}
        </span>
        {line.tool && <code className="font-mono text-text">{line.tool}</code>}
        {line.failed && <span className="text-failed">failed</span>}
        <span className="flex-1" />
        {streams && (
          <span className="flex items-center gap-1 text-running">
            <LoaderCircle aria-hidden size={12} className="motion-safe:animate-spin-slow" />
            streaming
          </span>
        )}
        {call && <CallPrice call={call} />}
      </header>
      {written !== undefined && <JsonView value={written} label="Arguments" />}
      {line.text && written === undefined && <Text kind={line.kind} text={line.text} />}
      {!line.text && line.kind === "user" && (
        <p className="text-muted">What it was told is stored with the first answer.</p>
      )}
    </article>
  );
}

function CallPrice({ call }: { call: Call }) {
  const { input, output, cache_read: cached } = call.usage;
  return (
    <span className="tabular-nums" title={`request ${call.number} to ${call.model}`}>
      {count(input + cached)} in · {count(output)} out · {money(call.cost_usd)}
    </span>
  );
}

function Text({ kind, text }: { kind: string; text: string }) {
  const [all, setAll] = useState(kind !== "system" && text.length <= LONG);
  // text that grows by the word is drawn when there is time for it
  const said = useDeferredValue(text);
  const shown = all ? said : `${said.slice(0, kind === "system" ? 240 : LONG)}`;
  const cut = shown.length < said.length;
  return (
    <>
      {kind === "assistant" ? (
        <div className="min-w-0 break-words [&_code]:font-mono [&_code]:text-xs [&_li]:ml-5 [&_ol]:list-decimal [&_p+p]:mt-2 [&_pre]:overflow-x-auto [&_pre]:rounded [&_pre]:bg-sunken [&_pre]:p-2 [&_ul]:list-disc">
          <Suspense fallback={shown}>
            <Markdown>{shown}</Markdown>
          </Suspense>
        </div>
      ) : (
        <p
          className={clsx(
            "min-w-0 whitespace-pre-wrap break-words",
            (kind === "tool_result" || kind === "tool_call") && "font-mono text-xs",
            (kind === "note" || kind === "thinking") && "text-muted",
          )}
        >
          {shown}
          {cut && "…"}
        </p>
      )}
      {cut && (
        <button className="mt-1 text-xs text-accent hover:underline" onClick={() => setAll(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}
