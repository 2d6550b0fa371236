/** A run in one line: its workflow, and its short id in the type of ids. */
import { Link } from "@tanstack/react-router";
import { shortId } from "../lib/format";

export function RunLink({ run, className }: { run: { id: string; workflow: string }; className?: string }) {
  return (
    <Link
      to="/runs/$run"
      params={{ run: run.id }}
      title={`${run.workflow} ${run.id}`}
      className={`inline-flex min-w-0 max-w-full items-baseline gap-2 rounded hover:underline ${className ?? ""}`}
    >
      <span className="truncate font-medium">{run.workflow}</span>
      <span className="shrink-0 font-mono text-xs text-muted">{shortId(run.id)}</span>
    </Link>
  );
}
