/** How statements and groups look in the graph. */
import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import clsx from "clsx";
import { Maximize2 } from "lucide-react";
import { count } from "../../../lib/format";
import { TallyBar, tallyWords, totalOf } from "../rows/TallyBar";
import type { GraphNode } from "./shape";

export interface NodeData extends Record<string, unknown> {
  node: GraphNode;
  chosen: boolean;
  /** a group that is drawn as one node */
  closed: boolean;
  /** of a definition that is not run */
  bare: boolean;
  onEnter: (id: string) => void;
}

export type StatementNode = Node<NodeData>;

const PROBLEM = ["failed", "dead_letter", "lost"];

function Handles() {
  return (
    <>
      <Handle type="target" position={Position.Top} className="!invisible" isConnectable={false} />
      <Handle type="source" position={Position.Bottom} className="!invisible" isConnectable={false} />
    </>
  );
}

function frame(data: NodeData): string {
  const { states } = data.node;
  if (data.chosen) return "border-accent ring-2 ring-accent";
  if (PROBLEM.some((state) => states[state])) return "border-failed";
  if (states.needs_you) return "border-needs-you";
  if (states.running) return "border-running";
  return "border-line";
}

function Counts({ node }: { node: GraphNode }) {
  const total = totalOf(node.states);
  const bad = tallyWords({ ...node.states, done: 0, skipped: 0 }, 2);
  return (
    <span className="truncate text-[11px] tabular-nums text-muted">
      {total === 0 ? "not started" : `${count(node.states.done ?? 0)}/${count(total)}`}
      {bad && ` · ${bad}`}
    </span>
  );
}

export function Statement({ data }: NodeProps<StatementNode>) {
  const { node, closed, onEnter } = data;
  return (
    <div
      className={clsx(
        "flex h-full w-full flex-col justify-center gap-0.5 rounded-md border bg-surface px-2.5 text-left",
        closed && "border-double border-4",
        frame(data),
      )}
    >
      <Handles />
      <span className="flex items-baseline gap-1.5">
        <span className="truncate text-[13px] font-medium">{node.name || node.kind}</span>
        <span className="min-w-0 truncate text-[11px] text-muted">{node.facet || node.kind}</span>
        {closed && (
          <button
            type="button"
            aria-label={`Open ${node.name || node.kind}`}
            title="Draw what is inside"
            className="ml-auto text-muted hover:text-text"
            onClick={(event) => {
              event.stopPropagation();
              onEnter(node.id);
            }}
          >
            <Maximize2 aria-hidden size={12} />
          </button>
        )}
      </span>
      {!data.bare && (
        <>
          <TallyBar tally={node.states} />
          <Counts node={node} />
        </>
      )}
    </div>
  );
}

export function Group({ data }: NodeProps<StatementNode>) {
  const { node } = data;
  return (
    <div className={clsx("h-full w-full rounded-lg border border-dashed bg-sunken/60", frame(data))}>
      <Handles />
      <div className="flex h-8 items-center gap-2 px-3">
        <span className="shrink-0 text-xs font-medium">{node.name || node.kind}</span>
        {node.name && node.name !== node.kind && (
          <span className="truncate text-[11px] text-muted">{node.facet || node.kind}</span>
        )}
        {totalOf(node.states) > 1 && (
          <>
            <TallyBar tally={node.states} className="w-16 shrink-0" />
            <Counts node={node} />
          </>
        )}
      </div>
    </div>
  );
}
