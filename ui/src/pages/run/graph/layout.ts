/**
 * Where the statements of a graph are drawn. Groups are laid out from the inside out, each as a
 * graph of its own, because the layout knows no edges to groups.
 */
import { Graph as Dagre, layout } from "@dagrejs/dagre";

export interface LayoutNode {
  id: string;
  parent: string | null;
  /** groups have a size of their own making */
  group: boolean;
}

export interface LayoutEdge {
  source: string;
  target: string;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Boxes = Record<string, Box>;

export const NODE = { width: 208, height: 62 };
const PAD = { side: 16, top: 40, bottom: 16 };

/** Boxes of all nodes; those in a group are relative to it. */
export function layoutGraph(nodes: LayoutNode[], edges: LayoutEdge[]): Boxes {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const inside = new Map<string | null, LayoutNode[]>();
  for (const node of nodes) {
    const parent = node.parent !== null && byId.has(node.parent) ? node.parent : null;
    inside.set(parent, [...(inside.get(parent) ?? []), node]);
  }
  const lifted = liftEdges(edges, byId);
  const boxes: Boxes = {};
  const place = (parent: string | null): { width: number; height: number } => {
    const graph = new Dagre();
    graph.setGraph({ rankdir: "TB", ranker: "tight-tree", nodesep: 24, ranksep: 36 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const node of inside.get(parent) ?? []) {
      const children = inside.get(node.id);
      const size = node.group && children ? grown(place(node.id)) : NODE;
      graph.setNode(node.id, { ...size });
    }
    for (const edge of lifted.get(parent) ?? []) graph.setEdge(edge.source, edge.target);
    layout(graph);
    const { width = 0, height = 0 } = graph.graph();
    for (const node of inside.get(parent) ?? []) {
      const at = graph.node(node.id) as Box;
      boxes[node.id] = {
        x: at.x - at.width / 2 + (parent === null ? 0 : PAD.side),
        y: at.y - at.height / 2 + (parent === null ? 0 : PAD.top),
        width: at.width,
        height: at.height,
      };
    }
    return { width, height };
  };
  place(null);
  return boxes;
}

const grown = (size: { width: number; height: number }) => ({
  width: size.width + 2 * PAD.side,
  height: size.height + PAD.top + PAD.bottom,
});

/** Edges between the nodes of each group: an edge from further inside counts for what is around. */
function liftEdges(edges: LayoutEdge[], byId: Map<string, LayoutNode>) {
  const chain = (id: string) => {
    const found: string[] = [];
    for (let at = byId.get(id); at; at = at.parent === null ? undefined : byId.get(at.parent)) {
      found.unshift(at.id);
    }
    return found;
  };
  const lifted = new Map<string | null, LayoutEdge[]>();
  for (const edge of edges) {
    const from = chain(edge.source);
    const to = chain(edge.target);
    let common = 0;
    while (common < from.length && from[common] === to[common]) common += 1;
    const source = from[common];
    const target = to[common];
    if (source === undefined || target === undefined) continue;
    const parent = common === 0 ? null : (from[common - 1] ?? null);
    lifted.set(parent, [...(lifted.get(parent) ?? []), { source, target }]);
  }
  return lifted;
}
