/** The line of the program that a step is an instance of. */
import type { Step } from "../queries";
import type { Patch } from "../search";

export function SourceLink({ step, patch }: { step: Step; patch: Patch }) {
  const { source_file: file, source_line: line } = step;
  if (line === null) return null;
  return (
    <button
      className="max-w-full truncate text-left font-mono text-xs text-accent hover:underline"
      onClick={() => patch({ tab: "source", line, file: file ?? undefined }, false)}
    >
      {file ? `${file}:${line}` : `line ${line}`}
    </button>
  );
}
