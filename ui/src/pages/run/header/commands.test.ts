import { expect, it } from "vitest";
import type { Run } from "../queries";
import { asCli, asCurl, quoted } from "./commands";

const run = {
  workflow: "shop.Close",
  program: "abc",
  inputs: { month: "it's May", limit: 3 },
  labels: { env: "prod" },
} as unknown as Run;

it("quotes what a shell would read otherwise", () => {
  expect(quoted("a=b")).toBe("a=b");
  expect(quoted("it's $HOME")).toBe(`'it'\\''s $HOME'`);
});

it("writes the command that starts the same run", () => {
  expect(asCli(run)).toBe(
    `afl submit shop.Close -i 'month=it'\\''s May' -i limit=3 --label env=prod --program abc`,
  );
});

it("writes the request that starts the same run", () => {
  expect(asCurl(run, "http://host")).toContain(`"limit":3`);
  expect(asCurl(run, "http://host")).toContain("http://host/api/v1/runs");
});
