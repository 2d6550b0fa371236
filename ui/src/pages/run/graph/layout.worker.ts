/** Lays graphs out beside the page, so that it never stands still for one. */
import { layoutGraph, type LayoutEdge, type LayoutNode } from "./layout";

export interface LayoutRequest {
  key: string;
  nodes: LayoutNode[];
  edges: LayoutEdge[];
}

self.onmessage = (event: MessageEvent<LayoutRequest>) => {
  const { key, nodes, edges } = event.data;
  try {
    self.postMessage({ key, boxes: layoutGraph(nodes, edges) });
  } catch (error) {
    self.postMessage({ key, error: String(error) });
  }
};
