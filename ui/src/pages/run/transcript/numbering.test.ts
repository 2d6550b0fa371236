import { expect, it } from "vitest";
import { argumentsOf, numbered, type TranscriptLine } from "./numbering";

const line = (kind: string, tool: string | null = null, written: string | null = null) =>
  ({ kind, tool, arguments: written }) as TranscriptLine;

it("gives an answer the number of its call, whatever their order", () => {
  const lines = [
    line("user"),
    line("tool_call", "a"),
    line("tool_call", "b"),
    line("tool_result", "b"),
    line("tool_result", "a"),
    line("tool_call", "a"),
    line("tool_result", "a"),
    line("tool_result", "c"),
  ];
  expect(numbered(lines).map((one) => one.number)).toEqual([null, 1, 2, 2, 1, 3, 3, null]);
});

it("reads arguments that are JSON, and shows the others as they are", () => {
  expect(argumentsOf(line("tool_call", "a", '{"n": 1}'))).toEqual({ n: 1 });
  expect(argumentsOf(line("tool_call", "a", "{n:"))).toBe("{n:");
  expect(argumentsOf(line("tool_call", "a"))).toBeUndefined();
});
