import { describe, expect, it } from "vitest";
import type { Row, RowPage } from "../queries";
import { type RowQuery, WINDOW, type WindowPlace } from "./level";
import { RowStore } from "./store";

const TOTAL = 100_000;

const row = (path: string, kind: string, has_children = false) =>
  ({ path, kind, has_children, state: "done", statement: path }) as Row;

/** A run with a block, and a foreach of a hundred thousand iterations with two steps each. */
function answer(query: RowQuery, place: WindowPlace): RowPage {
  const all = (items: Row[]): RowPage => ({ items, next: null, total: items.length, mark: "1" });
  if (query.parent === "") return all([row("0", "AndThen", true), row("1", "AndMap", true)]);
  if (query.parent === "0") return all([row("0/listed", "VariableAssignment")]);
  if (query.parent !== "1") {
    const steps = ["charged", "told"].map((name) => `${query.parent}/${name}`);
    return all(steps.map((path) => row(path, "VariableAssignment")));
  }
  const from = place.offset ?? 0;
  const length = Math.min(WINDOW, TOTAL - from);
  const items = Array.from({ length }, (_, at) => row(`1/${from + at}`, "Block", true));
  return { items, next: from + length < TOTAL ? "more" : null, total: TOTAL, mark: "1" };
}

function opened() {
  const asked: string[] = [];
  const store = new RowStore("r", (_run, query, place) => {
    asked.push(`${query.parent}@${place.offset ?? 0}`);
    return Promise.resolve(answer(query, place));
  });
  /** Reads until nothing in sight is missing. */
  const settle = async (from: number, to: number) => {
    for (let before = -1; before !== asked.length; ) {
      before = asked.length;
      store.need(from, to);
      await new Promise((done) => setTimeout(done));
    }
  };
  const paths = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, at) => store.at(from + at).row?.path);
  return { store, asked, settle, paths };
}

describe("the rows of a large run", () => {
  it("open blocks by themselves, and loops when they are asked to", async () => {
    const { store, settle, paths } = opened();
    await settle(0, 40);
    expect(paths(0, 2)).toEqual(["0", "0/listed", "1"]);
    expect(store.size).toBe(3);
    store.toggle("1");
    await settle(0, 40);
    expect(store.size).toBe(3 + TOTAL);
    expect(paths(2, 4)).toEqual(["1", "1/0", "1/1"]);
  });

  it("are read at the end without what is before it", async () => {
    const { store, asked, settle, paths } = opened();
    store.toggle("1");
    await settle(0, 40);
    const last = store.size - 1;
    await settle(last - 20, last);
    expect(paths(last, last)).toEqual(["1/99999"]);
    expect(asked.filter((one) => one.startsWith("1@"))).toEqual(["1@0", "1@99800"]);
  });

  it("know where a step is that was never scrolled to", async () => {
    const { store, settle } = opened();
    await settle(0, 40);
    await store.reveal("1/54321/told");
    await settle(0, 40);
    const index = store.indexOf("1/54321/told");
    await settle(index! - 2, index! + 2);
    expect(index).toBe(2 + 1 + 54_321 + 2);
    expect(store.at(index!).row?.path).toBe("1/54321/told");
    expect(store.at(index! + 1).row?.path).toBe("1/54322");
  });

  it("are read again only where they are in sight", async () => {
    const { store, asked, settle } = opened();
    store.toggle("1");
    await settle(0, 40);
    await settle(store.size - 20, store.size - 1);
    asked.length = 0;
    store.setMark("2");
    await settle(store.size - 20, store.size - 1);
    expect(asked).toEqual(["1@99800", "@0"]);
  });
});
