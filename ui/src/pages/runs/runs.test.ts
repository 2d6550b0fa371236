import { describe, expect, it } from "vitest";
import { COLUMNS, type RunLine, shownColumns } from "./columns";
import { csv, csvCell } from "./download";
import { bulkFilter, filtersOf, isFiltered, viewQuery, viewSearch } from "./filters";
import { parametersSchema, parseLabels } from "./newRun";

const NOW = Date.UTC(2026, 7, 2, 10, 20, 30);

describe("filters", () => {
  it("asks for runs that nobody called unless told otherwise", () => {
    expect(filtersOf({}, NOW)).toEqual({ parent: "none" });
    expect(filtersOf({ called: true }, NOW)).toEqual({});
    expect(filtersOf({ parent: "r1" }, NOW)).toEqual({ parent: "r1" });
  });
  it("takes a range from the minute that it is", () => {
    const later = NOW + 20_000;
    expect(filtersOf({ range: "1h" }, NOW)).toEqual(filtersOf({ range: "1h" }, later));
    expect(filtersOf({ range: "1h" }, NOW).since).toBe("2026-08-02T09:20:00.000Z");
  });
  it("keeps text that looks like a number", () => {
    expect(filtersOf({ text: 7 as never }, NOW).text).toBe("7");
  });
  it("means the same in an action on all that match", () => {
    const search = { state: "failed", label: "env=prod,team=a=b", text: "card" };
    expect(bulkFilter(search, NOW)).toMatchObject({
      state: "failed",
      labels: { env: "prod", team: "a=b" },
      text: "card",
      top_only: true,
    });
  });
  it("is a view that can be opened again", () => {
    const search = { state: "failed", label: "env=prod", called: true, new: true };
    expect(viewSearch(viewQuery(search))).toEqual({
      state: "failed",
      label: "env=prod",
      called: true,
    });
  });
  it("knows whether the list is narrowed", () => {
    expect(isFiltered({ called: true })).toBe(false);
    expect(isFiltered({ label: "nonsense" })).toBe(false);
    expect(isFiltered({ text: "a" })).toBe(true);
  });
});

describe("columns", () => {
  it("leaves out what there is no room for, unless it was chosen", () => {
    const keys = (room: number, chosen: string[] | null = null) =>
      shownColumns(chosen, undefined, room).map((column) => column.key);
    expect(keys(2000)).toContain("trigger");
    expect(keys(766)).toEqual(["state", "workflow", "id", "started", "duration", "progress"]);
    expect(keys(300, ["workflow", "trigger"])).toEqual(["workflow", "trigger"]);
  });
  it("shows the errors of failed runs", () => {
    const shown = shownColumns(["workflow"], "failed", 500).map((column) => column.key);
    expect(shown).toEqual(["workflow", "error"]);
  });
});

describe("download", () => {
  it("writes cells that no spreadsheet takes for formulas", () => {
    expect(csvCell('=HYPERLINK("x")')).toBe('"\'=HYPERLINK(""x"")"');
    expect(csvCell("-1")).toBe("'-1");
    expect(csvCell(-1)).toBe("-1");
    expect(csvCell("a,b")).toBe('"a,b"');
    expect(csvCell(null)).toBe("");
  });
  it("has a line for each run", () => {
    const run = { id: "r1", workflow: "shop.Order" } as RunLine;
    const columns = COLUMNS.filter(({ key }) => key === "id" || key === "workflow");
    expect(csv([run], columns)).toBe("workflow,id\r\nshop.Order,r1\r\n");
  });
});

describe("new run", () => {
  it("makes one schema of all parameters", () => {
    const schema = parametersSchema([
      {
        name: "card",
        type: "Card",
        form: { $ref: "#/$defs/Card", $defs: { Card: { type: "object" } } },
        required: true,
        doc: "who pays",
        default: null,
      },
      { name: "loud", type: "Boolean", form: { type: "boolean" }, required: false, default: true, doc: null },
    ]);
    expect(schema).toEqual({
      type: "object",
      properties: {
        card: { $ref: "#/$defs/Card", description: "who pays" },
        loud: { type: "boolean", default: true },
      },
      required: ["card"],
      $defs: { Card: { type: "object" } },
    });
  });
  it("reads labels", () => {
    expect(parseLabels("env=prod, team=a=b")).toEqual({ env: "prod", team: "a=b" });
    expect(parseLabels("")).toEqual({});
    expect(parseLabels("prod")).toBeNull();
  });
});
