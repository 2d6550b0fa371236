import { describe, expect, it } from "vitest";
import { layoutGraph, NODE } from "./layout";

const step = (id: string, parent: string | null = null) => ({ id, parent, group: false });

describe("layout", () => {
  it("puts what needs something below it", () => {
    const boxes = layoutGraph([step("a"), step("b")], [{ source: "a", target: "b" }]);
    expect(boxes.b!.y).toBeGreaterThan(boxes.a!.y + NODE.height);
  });

  it("makes a group large enough for what is in it", () => {
    const nodes = [step("a"), { id: "g", parent: null, group: true }, step("b", "g"), step("c", "g")];
    const edges = [
      { source: "a", target: "b" },
      { source: "b", target: "c" },
    ];
    const boxes = layoutGraph(nodes, edges);
    const { g, b, c } = boxes;
    expect(g!.height).toBeGreaterThan(2 * NODE.height);
    expect(b!.x).toBeGreaterThan(0);
    expect(c!.y + c!.height).toBeLessThan(g!.height);
    expect(g!.y).toBeGreaterThan(boxes.a!.y);
  });

  it("takes as many statements as are drawn", () => {
    const nodes = Array.from({ length: 300 }, (_, at) => step(`s${at}`));
    const edges = nodes.slice(1).map((node, at) => ({ source: `s${at >> 1}`, target: node.id }));
    expect(Object.keys(layoutGraph(nodes, edges))).toHaveLength(300);
  });
});
