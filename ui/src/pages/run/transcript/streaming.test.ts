import { expect, it } from "vitest";
import type { Spoken } from "../../../lib/spoken";
import type { Transcript } from "../queries";
import { streamed } from "./streaming";

const spoken = (request: number, over = false): Spoken => ({
  request,
  over,
  parts: [
    { kind: "assistant", text: "Hi", tool: null },
    { kind: "tool_call", text: "{", tool: "look" },
  ],
});
const transcript = (numbers: number[], more: Partial<Transcript> = {}) =>
  ({
    state: "running",
    outcome: null,
    lines: [],
    calls: numbers.map((number) => ({ number })),
    ...more,
  }) as unknown as Transcript;

it("shows what is said until the transcript has it", () => {
  expect(streamed(transcript([]), spoken(0)).map((line) => [line.kind, line.text, line.tool])).toEqual([
    ["assistant", "Hi", null],
    ["tool_call", "{", "look"],
  ]);
  expect(streamed(transcript([0]), spoken(1))).toHaveLength(2);
  expect(streamed(transcript([]), spoken(0, true))).toHaveLength(2);
  expect(streamed(transcript([0]), spoken(0))).toEqual([]);
  expect(streamed(transcript([0, 1]), spoken(0))).toEqual([]);
  expect(streamed(transcript([]), undefined)).toEqual([]);
});

it("shows nothing of an answer that came to nothing", () => {
  expect(streamed(transcript([], { outcome: "error" }), spoken(0))).toEqual([]);
  expect(streamed(transcript([], { state: "suspended" }), spoken(0, true))).toEqual([]);
  expect(streamed(transcript([], { state: "suspended" }), spoken(0))).toHaveLength(2);
});
