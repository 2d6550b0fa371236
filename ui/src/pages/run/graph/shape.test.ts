import { describe, expect, it } from "vitest";
import type { Graph } from "../queries";
import { MOST, shapeOf } from "./shape";

const node = (id: string, parent: string | null, kind = "step") =>
  ({ id, parent, kind, name: id, facet: "", states: {}, line: null }) as Graph["nodes"][number];

const graph = (nodes: Graph["nodes"], edges: Graph["edges"]): Graph => ({
  hash: "h",
  workflow: "w",
  nodes,
  edges,
});

describe("what is drawn of a graph", () => {
  it("is all of a small one, without the workflow around it", () => {
    const nodes = [node("w", null, "workflow"), node("a", "w"), node("f", "w", "foreach"), node("b", "f")];
    const shape = shapeOf(graph(nodes, [{ source: "a", target: "f" }]), undefined);
    expect(shape.nodes.map((one) => one.id)).toEqual(["a", "f", "b"]);
    expect(shape.layout.find((one) => one.id === "f")?.group).toBe(true);
    expect(shape.closed.size).toBe(0);
  });

  it("is one group after the other of a large one", () => {
    const inner = Array.from({ length: MOST + 10 }, (_, at) => node(`s${at}`, "f"));
    const nodes = [node("w", null, "workflow"), node("a", "w"), node("f", "w", "foreach"), ...inner];
    const edges = [{ source: "a", target: "s5" }];
    const whole = shapeOf(graph(nodes, edges), undefined);
    expect(whole.nodes.map((one) => one.id)).toEqual(["a", "f"]);
    expect([...whole.closed]).toEqual(["f"]);
    expect(whole.edges).toEqual([{ source: "a", target: "f" }]);
    const inside = shapeOf(graph(nodes, edges), "f");
    expect(inside.nodes).toHaveLength(MOST);
    expect(inside.left).toBe(10);
    expect(inside.trail.map((one) => one.id)).toEqual(["f"]);
  });
});
