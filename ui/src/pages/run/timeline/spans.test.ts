import { describe, expect, it } from "vitest";
import type { Row } from "../queries";
import { partWords, rowParts } from "./spans";

const at = (second: number) => new Date(second * 1000).toISOString();
const row = (...parts: [Row["parts"][number]["part"], number, number | null][]) =>
  ({ parts: parts.map(([part, start, end]) => ({ part, start: at(start), end: end === null ? null : at(end) })) });

describe("the parts of a bar", () => {
  it("last until now while they go on", () => {
    const parts = rowParts(row(["earlier", 10, 12], ["retry", 12, null]), 20_000);
    expect(parts).toEqual([
      { part: "earlier", from: 10_000, to: 12_000 },
      { part: "retry", from: 12_000, to: 20_000 },
    ]);
    expect(partWords(parts)).toEqual(["earlier attempts 2.0s", "waits for a retry 8.0s"]);
  });

  it("never end before they begin, whatever the clock of the browser says", () => {
    expect(rowParts(row(["queued", 10, null]), 9_000)).toEqual([
      { part: "queued", from: 10_000, to: 10_000 },
    ]);
  });

  it("are none where nothing is known", () => {
    expect(rowParts(row(), 1000)).toEqual([]);
  });
});
