/** The sources of the run's program, at the line that somebody came for. */
import clsx from "clsx";
import { useEffect, useRef } from "react";
import { CopyButton } from "../../../components/CopyButton";
import { Select } from "../../../components/Input";
import { Empty, QueryState } from "../../../components/States";
import { type Program, type Run, useProgram } from "../queries";
import type { Patch, RunSearch } from "../search";

export function SourceTab({ run, search, patch }: { run: Run; search: RunSearch; patch: Patch }) {
  const program = useProgram(run.program);
  return (
    <QueryState query={program} label="Reading the sources">
      {(data) => <Files program={data} run={run} search={search} patch={patch} />}
    </QueryState>
  );
}

function Files({ program, run, search, patch }: { program: Program; run: Run; search: RunSearch; patch: Patch }) {
  const workflow = program.workflows.find((one) => one.name === run.workflow);
  const wanted = search.file ?? workflow?.file;
  const file = program.sources.find((one) => one.name === wanted) ?? program.sources[0];
  if (!file) {
    return (
      <div className="p-6">
        <Empty
          title="The sources were not deployed"
          hint="The program was made from compiled text. Deploy with its sources to read them here."
        />
      </div>
    );
  }
  const line = search.line ?? (search.file ? undefined : (workflow?.line ?? undefined));
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex items-center gap-2 border-b border-line px-3 py-1.5 text-[13px]">
        {program.sources.length > 1 ? (
          <Select
            aria-label="File"
            className="!h-7 !w-auto !text-xs"
            value={file.name}
            onChange={(event) => patch({ file: event.target.value, line: undefined })}
          >
            {program.sources.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </Select>
        ) : (
          <span className="font-mono text-xs">{file.name}</span>
        )}
        <CopyButton text={file.text} label="Copy the file" />
      </div>
      <Lines key={`${file.name}:${line}`} text={file.text} line={line} />
    </div>
  );
}

function Lines({ text, line }: { text: string; line: number | undefined }) {
  const marked = useRef<HTMLSpanElement>(null);
  useEffect(() => marked.current?.scrollIntoView({ block: "center" }), []);
  return (
    <pre className="min-h-0 flex-1 overflow-auto py-2 font-mono text-xs leading-5" tabIndex={0} role="region" aria-label="Source">
      {text.split("\n").map((content, at) => (
        <span
          key={at}
          ref={at + 1 === line ? marked : undefined}
          className={clsx("flex w-max min-w-full", at + 1 === line && "bg-accent-soft")}
        >
          <span aria-hidden className="w-12 shrink-0 select-none pr-4 text-right text-muted">
            {at + 1}
          </span>
          <span className="whitespace-pre pr-4">{content || " "}</span>
        </span>
      ))}
    </pre>
  );
}
