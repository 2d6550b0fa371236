/** The last log lines of all runs, and a search in them. */
import { Link } from "@tanstack/react-router";
import clsx from "clsx";
import { RefreshCw } from "lucide-react";
import { useState } from "react";
import { api, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { Input, Select } from "../../components/Input";
import { Page } from "../../components/Page";
import { Empty, Filtered, QueryState } from "../../components/States";
import { dateTime, shortId } from "../../lib/format";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { pieces } from "../run/logs/ansi";

type Line = Schemas["LogLineView"];
interface Search {
  level: string;
  grep: string;
  run: string;
}

const LEVELS: Record<string, string> = {
  debug: "text-faint",
  info: "text-muted",
  warning: "text-waiting",
  error: "text-failed",
};

export default function LogsPage() {
  const [search, setSearch] = useSearchState<Search>();
  const [text, setText] = useState(search.grep ?? "");
  const query = { limit: 500, ...search };
  const logs = useApi(
    ["logs", query],
    (signal) => api.GET("/api/v1/logs", { params: { query }, signal }),
    { keep: true, every: 5_000 },
  );
  const active = Boolean(search.level || search.grep || search.run);
  const clear = () => {
    setText("");
    setSearch({ level: undefined, grep: undefined, run: undefined });
  };
  return (
    <Page
      title="Logs"
      fill
      subtitle="The last lines of all runs; the page of a run has its whole log, and follows it."
      actions={
        <Button icon={RefreshCw} busy={logs.isFetching} onClick={() => void logs.refetch()}>
          Read again
        </Button>
      }
    >
      <form
        role="search"
        className="flex flex-wrap items-end gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          setSearch({ grep: text });
        }}
      >
        <Field label="Text">
          <Input value={text} placeholder="in the line" onChange={(event) => setText(event.target.value)} />
        </Field>
        <Field label="Level">
          <Select value={search.level ?? ""} onChange={(event) => setSearch({ level: event.target.value })}>
            <option value="">any</option>
            {Object.keys(LEVELS).map((level) => (
              <option key={level} value={level}>
                {level} or higher
              </option>
            ))}
          </Select>
        </Field>
        <Field label="Run">
          <Input
            value={search.run ?? ""}
            placeholder="id of a run"
            onChange={(event) => setSearch({ run: event.target.value.trim() }, { replace: true })}
          />
        </Field>
        <Button type="submit">Search</Button>
      </form>
      <QueryState query={logs}>
        {(page) => {
          if (page.items.length > 0) return <Lines lines={page.items} />;
          if (active) return <Filtered onClear={clear} />;
          return (
            <Empty
              title="Nothing was logged yet"
              hint="What handlers say through ctx.log and what commands print appears here."
              docs="docs/how-to/read-logs.md"
            />
          );
        }}
      </QueryState>
    </Page>
  );
}

function Lines({ lines }: { lines: Line[] }) {
  return (
    <div
      role="log"
      aria-label="Log lines"
      tabIndex={0}
      className="min-h-0 flex-1 overflow-auto rounded-lg border border-line bg-surface py-1 font-mono text-xs leading-5"
    >
      {[...lines].reverse().map((line) => (
        <div key={`${line.run} ${line.cursor}`} className="flex gap-3 px-3 hover:bg-sunken">
          <time dateTime={line.at} title={line.at} className="shrink-0 text-faint">
            {dateTime(line.at)}
          </time>
          <Link
            to="/runs/$run"
            params={{ run: line.run }}
            search={{ tab: "logs", logStep: line.step }}
            className="w-56 shrink-0 truncate text-accent hover:underline"
            title={`${line.run} ${line.step}`}
          >
            {shortId(line.run)} {line.step}
          </Link>
          <span className={clsx("w-14 shrink-0", LEVELS[line.level ?? ""] ?? "text-muted")}>
            {line.level ?? line.stream}
          </span>
          <span className={clsx("min-w-0 whitespace-pre-wrap break-words", line.gap !== null && "text-lost")}>
            {line.gap !== null ? `~ lines are missing: ${line.text}` : <Coloured text={line.text} />}
          </span>
        </div>
      ))}
    </div>
  );
}

function Coloured({ text }: { text: string }) {
  return pieces(text).map((part, at) => (
    <span key={at} className={part.className} style={part.style}>
      {part.text}
    </span>
  ));
}
