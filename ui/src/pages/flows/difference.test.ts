import { describe, expect, test } from "vitest";
import { compared, difference } from "./difference";

const signs = (before: string, after: string) =>
  compared(before.split(""), after.split(""))
    .map((line) => line.sign + line.text)
    .join(" ");

describe("compared", () => {
  test.each([
    ["abc", "abc", " a  b  c"],
    ["abc", "axc", " a -b +x  c"],
    ["b", "abc", "+a  b +c"],
    ["abcd", "bd", "-a  b -c  d"],
  ])("%s to %s", (before, after, told) => {
    expect(signs(before, after)).toBe(told);
  });
});

describe("difference", () => {
  test("files that are the same are left out, new and old ones are told", () => {
    const parts = difference(
      [{ name: "a", text: "1" }, { name: "b", text: "x\ny" }],
      [{ name: "a", text: "1" }, { name: "c", text: "z" }],
    );
    expect(parts.map((part) => [part.name, part.added, part.removed])).toEqual([
      ["b", 1, 2],
      ["c", 1, 1],
    ]);
  });

  test("what is far from a change is not shown", () => {
    const text = Array.from({ length: 50 }, (_, at) => `line ${at}`);
    const [part] = difference(
      [{ name: "a", text: text.join("\n") }],
      [{ name: "a", text: text.with(25, "other").join("\n") }],
    );
    expect(part?.lines.length).toBeLessThan(12);
  });
});
