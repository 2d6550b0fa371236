import { expect, it } from "vitest";
import { merged } from "./search";

it("leaves out of the address what is empty", () => {
  const before = { state: "failed", text: "a", called: true, label: ["x"] };
  const patch = { text: "", called: false, label: [], workflow: "shop.Order", since: null };
  expect(merged(before, patch)).toEqual({ state: "failed", workflow: "shop.Order" });
});
