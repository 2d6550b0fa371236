/** Which part of a definition graph is drawn. Large ones are drawn one group at a time. */
import type { Graph } from "../queries";
import type { LayoutEdge, LayoutNode } from "./layout";

export type GraphNode = Graph["nodes"][number];

/** More nodes than this are no picture any more. */
export const MOST = 300;

export interface Shape {
  /** names the picture: same key, same layout */
  key: string;
  nodes: GraphNode[];
  layout: LayoutNode[];
  edges: LayoutEdge[];
  /** groups that are drawn as one node and can be opened */
  closed: Set<string>;
  /** how many nodes of this group are not drawn at all */
  left: number;
  /** the groups around what is drawn, the outermost first */
  trail: GraphNode[];
}

/** Whether steps bear the statement. The workflow is the run itself. */
export const hasRows = (node: GraphNode) => node.kind !== "workflow";

export function shapeOf(graph: Graph, inside: string | undefined): Shape {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  const parents = new Set(graph.nodes.map((node) => node.parent));
  const root = graph.nodes.find((node) => node.kind === "workflow" && node.parent === null);
  const focus = inside !== undefined && byId.has(inside) ? inside : undefined;
  const top = focus ?? root?.id ?? null;
  const isIn = (node: GraphNode) => chain(node, byId).includes(top ?? "");
  const all = graph.nodes.filter((node) => node.id !== top && (top === null || isIn(node)));
  const whole = all.length <= MOST;
  const shown = whole ? all : all.filter((node) => (node.parent ?? null) === top).slice(0, MOST);
  const ids = new Set(shown.map((node) => node.id));
  const closed = whole ? new Set<string>() : new Set(shown.filter((n) => parents.has(n.id)).map((n) => n.id));
  const drawn = (id: string) => {
    for (let at = byId.get(id); at; at = at.parent === null ? undefined : byId.get(at.parent)) {
      if (ids.has(at.id)) return at.id;
    }
    return null;
  };
  return {
    key: `${graph.hash}:${focus ?? ""}`,
    nodes: shown,
    layout: shown.map((node) => ({
      id: node.id,
      parent: node.parent !== null && ids.has(node.parent) ? node.parent : null,
      group: parents.has(node.id) && !closed.has(node.id),
    })),
    edges: edgesOf(graph, drawn),
    closed,
    left: whole ? 0 : all.filter((node) => (node.parent ?? null) === top).length - shown.length,
    trail: focus === undefined ? [] : chain(byId.get(focus)!, byId).map((id) => byId.get(id)!).filter((n) => n !== root),
  };
}

/** The ids of a node and of what it stands in, the outermost first. */
function chain(node: GraphNode, byId: Map<string, GraphNode>): string[] {
  const found: string[] = [];
  for (let at: GraphNode | undefined = node; at; at = at.parent === null ? undefined : byId.get(at.parent)) {
    found.unshift(at.id);
  }
  return found;
}

function edgesOf(graph: Graph, drawn: (id: string) => string | null): LayoutEdge[] {
  const seen = new Map<string, LayoutEdge>();
  for (const edge of graph.edges) {
    const source = drawn(edge.source);
    const target = drawn(edge.target);
    if (source === null || target === null || source === target) continue;
    seen.set(`${source} ${target}`, { source, target });
  }
  return [...seen.values()];
}
