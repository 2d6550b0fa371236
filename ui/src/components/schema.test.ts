import { describe, expect, it } from "vitest";
import { fromLocal, initial, missing, parseJson, parseNumber, shape, toLocal } from "./schema";

const ROOT = {
  $defs: {
    Card: {
      type: "object",
      properties: { number: { type: "string" }, expires: { type: "string", format: "date" } },
      required: ["number"],
    },
    Loop: { $ref: "#/$defs/Loop" },
  },
};

describe("shape", () => {
  it.each([
    [{ type: "string" }, "string", false],
    [{ type: "string", format: "date-time" }, "date-time", false],
    [{ type: ["integer", "null"] }, "integer", true],
    [{ anyOf: [{ type: "number" }, { type: "null" }] }, "number", true],
    [{ anyOf: [{ $ref: "#/$defs/Card" }, { type: "null" }] }, "object", true],
    [{ oneOf: [{ type: "number" }, { type: "string" }] }, "json", false],
    [{ enum: ["a", "b"] }, "enum", false],
    [{ type: "array", items: { type: "string" } }, "array", false],
    [{ type: "array" }, "json", false],
    [{ type: "object" }, "json", false],
    [{ $ref: "#/$defs/Card" }, "object", false],
    [{ $ref: "#/$defs/Loop" }, "json", false],
    [{}, "json", false],
  ])("%j is a %s", (schema, kind, nullable) => {
    expect(shape(schema, ROOT)).toMatchObject({ kind, nullable });
  });
});

describe("initial", () => {
  it("takes the defaults, and the emptiest value of the needed fields", () => {
    const schema = {
      type: "object",
      properties: {
        name: { type: "string", default: "world" },
        loud: { type: "boolean" },
        items: { type: "array", items: { type: "string" } },
        size: { enum: ["s", "m"] },
        note: { type: ["string", "null"] },
        needed: { type: ["string", "null"] },
        amount: { type: "number" },
      },
      required: ["needed", "amount"],
    };
    expect(initial(schema, schema)).toEqual({
      name: "world",
      loud: false,
      items: [],
      size: "s",
      needed: null,
    });
  });
});

describe("what is typed", () => {
  it("becomes a number or an error", () => {
    expect(parseNumber("", true)).toEqual({});
    expect(parseNumber(" 42 ", true)).toEqual({ value: 42 });
    expect(parseNumber("1.5", false)).toEqual({ value: 1.5 });
    expect(parseNumber("1.5", true).error).toContain("whole");
    expect(parseNumber("9007199254740993", true).error).toContain("too large");
    expect(parseNumber("x", false).error).toContain("not a number");
  });
  it("becomes JSON or an error", () => {
    expect(parseJson('{"a": [1]}')).toEqual({ value: { a: [1] } });
    expect(parseJson("{")).toMatchObject({ error: expect.stringContaining("not JSON") });
    expect(parseJson(" ")).toEqual({});
  });
  it("becomes a time and back", () => {
    const at = fromLocal("2026-08-01T10:20:30");
    expect(at).toBeDefined();
    expect(toLocal(at)).toBe("2026-08-01T10:20:30");
    expect(fromLocal("")).toBeUndefined();
    expect(toLocal(null)).toBe("");
  });
});

it("names the needed fields without a value, wherever they are", () => {
  const schema = {
    ...ROOT,
    type: "object",
    properties: {
      name: { type: "string" },
      cards: { type: "array", items: { $ref: "#/$defs/Card" } },
    },
    required: ["name", "cards"],
  };
  expect(missing(schema, { cards: [{ number: "1" }, {}] }, schema)).toEqual([
    "/name",
    "/cards/1/number",
  ]);
});
