/** Where in the graph one is, and the switch between picture and table. */
import { ChevronRight, Table2, Workflow } from "lucide-react";
import { Button } from "../../../components/Button";
import type { GraphNode } from "./shape";

export function Trail({
  trail,
  table,
  onInside,
  onTable,
}: {
  trail: GraphNode[];
  table: boolean;
  onInside: (id: string | undefined) => void;
  onTable: (table: boolean) => void;
}) {
  return (
    <div className="flex h-9 shrink-0 items-center gap-1 border-b border-line px-3">
      <h2 className="text-xs font-medium text-muted">Workflow</h2>
      {trail.length > 0 && (
        <nav aria-label="Groups" className="flex min-w-0 items-center gap-1 text-xs">
          <button className="text-accent hover:underline" onClick={() => onInside(undefined)}>
            all
          </button>
          {trail.map((node) => (
            <span key={node.id} className="flex min-w-0 items-center gap-1">
              <ChevronRight aria-hidden size={12} className="text-faint" />
              <button className="truncate text-accent hover:underline" onClick={() => onInside(node.id)}>
                {node.name || node.kind}
              </button>
            </span>
          ))}
        </nav>
      )}
      <span className="ml-auto" />
      <Button
        variant="ghost"
        size="sm"
        icon={table ? Workflow : Table2}
        aria-pressed={table}
        onClick={() => onTable(!table)}
      >
        {table ? "Graph" : "Table"}
      </Button>
    </div>
  );
}
