import { describe, expect, it } from "vitest";
import { bulkAsked, bulkSearch } from "./bulkWords";

const none = { state: null, workflow: null, labels: {}, text: null, since: null, until: null };

describe("what was asked of many runs", () => {
  it("is told in words", () => {
    const filter = {
      ...none,
      state: "failed" as const,
      workflow: "shop.Order",
      labels: { env: "prod" },
      since: "2026-10-01T08:30:00Z",
      top_only: true,
    };
    expect(bulkAsked({ filter, named: 0 })).toBe(
      "failed · shop.Order · env=prod · since 2026-10-01 08:30",
    );
    expect(bulkAsked({ filter: { ...none, top_only: false }, named: 0 })).toBe("all runs");
    expect(bulkAsked({ filter: null, named: 3 })).toBe("3 runs chosen one by one");
  });

  it("is a filter of the list, but for the state that it has changed", () => {
    const filter = { ...none, state: "failed" as const, labels: { env: "prod", tenant: "a" } };
    expect(bulkSearch({ ...filter, top_only: false })).toEqual({
      label: "env=prod,tenant=a",
      called: true,
    });
    expect(bulkSearch({ ...none, text: "x", top_only: true })).toEqual({ text: "x" });
  });
});
