import { describe, expect, it } from "vitest";
import type { Row, RowPage } from "../queries";
import { Level, WINDOW } from "./level";

const row = (path: string) => ({ path, statement: path.at(-1) ?? "" }) as Row;
const page = (paths: string[], next: string | null, total: number | null): RowPage => ({
  items: paths.map(row),
  next,
  total,
  mark: "1",
});
const paths = (level: Level) => [...level.entries()].map(([, one]) => one.path);

describe("windows by number", () => {
  it("know how many there are after the first window, and read any of them", () => {
    const level = new Level({ parent: "0" });
    expect(level.count).toBe(1);
    expect(level.begin(0)).toEqual({ cursor: undefined });
    level.take(0, page(["0/0", "0/1"], "0/1", 100_000), "1");
    expect(level.count).toBe(100_000);
    expect(level.windowOf(99_999)).toBe(499);
    expect(level.begin(499)).toEqual({ offset: 499 * WINDOW });
    level.take(499, page(["0/99999"], null, 100_000), "1");
    expect(level.row(99_999)?.path).toBe("0/99999");
    expect(level.row(5_000)).toBeUndefined();
  });

  it("are read again when the run has another mark, and only then", () => {
    const level = new Level({ parent: "0" });
    level.take(0, page(["0/0"], null, 1), "1");
    expect(level.needs(0, "1")).toBe(false);
    expect(level.needs(0, "2")).toBe(true);
  });
});

describe("windows behind each other", () => {
  it("show one more row until the end is known", () => {
    const level = new Level({ parent: "0" });
    level.take(0, page(["0/a", "0/b"], "0/b", null), "1");
    expect(level.count).toBe(3);
    expect(level.windowOf(2)).toBe(1);
    expect(level.begin(1)).toEqual({ cursor: "0/b" });
    level.take(1, page(["0/c"], null, null), "1");
    expect(level.count).toBe(3);
    expect(paths(level)).toEqual(["0/a", "0/b", "0/c"]);
  });

  it("go on behind a window in which nothing matched", () => {
    const level = new Level({ text: "x", statement: "z" });
    level.take(0, page([], "0/a", null), "1");
    expect(level.count).toBe(1);
    expect(level.windowOf(0)).toBe(1);
    expect(level.needs(1, "1")).toBe(true);
    level.take(1, page(["0/z"], null, null), "1");
    expect(paths(level)).toEqual(["0/z"]);
    expect(level.count).toBe(1);
  });
});
