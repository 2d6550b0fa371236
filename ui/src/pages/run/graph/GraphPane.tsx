/** The definition graph of the run's workflow: one node for a statement, whatever the run's size. */
import {
  Background,
  BackgroundVariant,
  Controls,
  type Edge,
  MarkerType,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import "./graph.css";
import { type RefObject, useEffect, useMemo, useRef } from "react";
import { Button } from "../../../components/Button";
import { Empty, Loading, QueryState } from "../../../components/States";
import { type Graph, useGraph } from "../queries";
import { GraphTable } from "./GraphTable";
import { Group, Statement, type StatementNode } from "./nodes";
import { hasRows, MOST, type Shape, shapeOf } from "./shape";
import { Trail } from "./Trail";
import { useLayout } from "./useLayout";

// `group` is a type of the library, with a look of its own
const NODE_TYPES = { statement: Statement, block: Group };

const FIT = { maxZoom: 1, padding: 0.08 };

export interface GraphChoice {
  statement: string | undefined;
  inside: string | undefined;
  table: boolean;
  /** of a definition that is not run: nothing is counted */
  bare?: boolean;
  onStatement: (id: string | undefined) => void;
  onInside: (id: string | undefined) => void;
  onTable: (table: boolean) => void;
}

export default function GraphPane({ run, ...choice }: { run: string } & GraphChoice) {
  const graph = useGraph(run);
  return (
    <section aria-label="Graph" className="flex h-full min-h-0 min-w-0 flex-col">
      <QueryState query={graph} label="Reading the graph">
        {(data) => <Drawn graph={data} {...choice} />}
      </QueryState>
    </section>
  );
}

export function Drawn({ graph, ...choice }: { graph: Graph } & GraphChoice) {
  const shape = useMemo(() => shapeOf(graph, choice.inside), [graph, choice.inside]);
  if (shape.nodes.length === 0) {
    return <Empty title="Nothing to draw" hint="The workflow has no statements." />;
  }
  return (
    <>
      <Trail trail={shape.trail} table={choice.table} onInside={choice.onInside} onTable={choice.onTable} />
      {shape.left > 0 && (
        <p className="px-3 py-1 text-xs text-muted">
          {shape.left} more statements are not drawn ({MOST} at most). The table has all of them.
        </p>
      )}
      {choice.table ? (
        <GraphTable graph={graph} {...choice} />
      ) : (
        <ReactFlowProvider>
          <Picture shape={shape} {...choice} />
        </ReactFlowProvider>
      )}
    </>
  );
}

function Picture({ shape, statement, bare = false, onStatement, onInside, onTable }: { shape: Shape } & GraphChoice) {
  const { boxes, failed } = useLayout(shape.key, shape.layout, shape.edges);
  const nodes = useMemo<StatementNode[]>(() => {
    if (boxes === null) return [];
    const laid = new Map(shape.layout.map((node) => [node.id, node]));
    return inOrder(shape).flatMap((node) => {
      const box = boxes[node.id];
      const at = laid.get(node.id);
      if (!box || !at) return [];
      return {
        id: node.id,
        type: at.group ? "block" : "statement",
        position: { x: box.x, y: box.y },
        parentId: at.parent ?? undefined,
        width: box.width,
        height: box.height,
        style: { width: box.width, height: box.height },
        draggable: false,
        focusable: true,
        ariaLabel: `${node.name || node.kind} ${node.facet}`,
        data: {
          node,
          chosen: node.id === statement,
          closed: shape.closed.has(node.id),
          bare,
          onEnter: onInside,
        },
      };
    });
  }, [boxes, shape, statement, bare, onInside]);
  const edges = useMemo<Edge[]>(
    () =>
      shape.edges.map((edge) => ({
        id: `${edge.source} ${edge.target}`,
        ...edge,
        type: "smoothstep",
        pathOptions: { offset: 8, borderRadius: 6 },
        focusable: false,
        markerEnd: { type: MarkerType.ArrowClosed, color: "var(--faint)", width: 14, height: 14 },
      })),
    [shape],
  );
  const box = useRef<HTMLDivElement>(null);
  const moved = useFitted(box, boxes !== null);
  if (failed) {
    return (
      <Empty
        title="The graph could not be laid out"
        hint="The table shows the same statements."
        action={<Button onClick={() => onTable(true)}>Show the table</Button>}
      />
    );
  }
  if (boxes === null) return <Loading label="Laying out the graph" />;
  return (
    <div ref={box} className="min-h-0 flex-1" data-testid="graph">
      <ReactFlow
        key={shape.key}
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        fitView
        fitViewOptions={FIT}
        minZoom={0.1}
        maxZoom={1.5}
        nodesConnectable={false}
        nodesDraggable={false}
        elementsSelectable
        onlyRenderVisibleElements
        proOptions={{ hideAttribution: true }}
        onMoveStart={(event) => {
          if (event !== null) moved.current = true;
        }}
        onNodeClick={(_, node) => {
          if (hasRows(node.data.node)) onStatement(node.id === statement ? undefined : node.id);
        }}
        onNodeDoubleClick={(_, node) => shape.closed.has(node.id) && onInside(node.id)}
      >
        <Background variant={BackgroundVariant.Dots} color="var(--line)" gap={20} />
        <Controls showInteractive={false} position="bottom-right" />
      </ReactFlow>
    </div>
  );
}

/** Fits the graph into its place whenever that changes, until the reader has moved it. */
function useFitted(box: RefObject<HTMLDivElement | null>, drawn: boolean) {
  const { fitView } = useReactFlow();
  const moved = useRef(false);
  useEffect(() => {
    const element = box.current;
    if (!drawn || !element) return;
    const watch = new ResizeObserver(() => {
      if (!moved.current) requestAnimationFrame(() => void fitView(FIT));
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, [box, drawn, fitView]);
  return moved;
}

/** Parents before what stands in them, as the library wants it. */
function inOrder(shape: Shape) {
  const parent = new Map(shape.layout.map((node) => [node.id, node.parent]));
  const depth = (id: string): number => {
    const above = parent.get(id);
    return above ? depth(above) + 1 : 0;
  };
  return [...shape.nodes].sort((a, b) => depth(a.id) - depth(b.id));
}
