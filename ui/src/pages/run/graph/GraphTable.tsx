/** The statements of the graph as a table: the same numbers without the picture. */
import clsx from "clsx";
import { count } from "../../../lib/format";
import type { Graph } from "../queries";
import { TallyBar, totalOf } from "../rows/TallyBar";
import { hasRows } from "./shape";

export function GraphTable({
  graph,
  statement,
  bare,
  onStatement,
}: {
  graph: Graph;
  statement: string | undefined;
  /** of a definition that is not run */
  bare?: boolean;
  onStatement: (id: string | undefined) => void;
}) {
  const names = new Map(graph.nodes.map((node) => [node.id, node.name || node.kind]));
  const needs = (id: string) =>
    graph.edges.filter((edge) => edge.target === id).map((edge) => names.get(edge.source) ?? "");
  return (
    <div
      className="min-h-0 flex-1 overflow-auto"
      tabIndex={0}
      role="region"
      aria-label="Statements"
    >
      <table className="w-full text-[13px]">
        <thead className="sticky top-0 bg-surface text-left text-[11px] text-muted">
          <tr>
            <th className="px-3 py-1.5 font-medium">Statement</th>
            <th className="px-2 font-medium">Needs</th>
            {!bare && <th className="px-2 font-medium">States</th>}
            {!bare && <th className="px-3 text-right font-medium">Steps</th>}
          </tr>
        </thead>
        <tbody>
          {graph.nodes.map((node) => (
            <tr key={node.id} className={clsx("border-t border-line", node.id === statement && "bg-accent-soft")}>
              <td className="max-w-56 px-3 py-1">
                <button
                  disabled={!hasRows(node)}
                  className="block max-w-full truncate text-left enabled:hover:underline"
                  aria-pressed={node.id === statement}
                  onClick={() => onStatement(node.id === statement ? undefined : node.id)}
                >
                  <span className="font-medium">{node.name || node.kind}</span>{" "}
                  <span className="text-xs text-muted">{node.facet || node.kind}</span>
                </button>
              </td>
              <td className="max-w-32 truncate px-2 text-xs text-muted">{needs(node.id).join(", ") || "–"}</td>
              {!bare && (
                <>
                  <td className="w-28 px-2">
                    <TallyBar tally={node.states} />
                  </td>
                  <td className="px-3 text-right tabular-nums">{count(totalOf(node.states))}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
