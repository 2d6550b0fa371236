import { expect, it } from "vitest";
import { type ChunkEvent, heard, type Spoken, SpokenAnswers } from "./spoken";

const event = (parts: [string, string, string?][], more: Partial<ChunkEvent> = {}): ChunkEvent => ({
  topic: "chunks:1",
  request: 0,
  fresh: false,
  over: false,
  parts: parts.map(([kind, text, tool]) => ({ kind, text, tool: tool ?? null })),
  ...more,
});

const after = (...events: ChunkEvent[]) =>
  events.reduce<Spoken | undefined>((before, one) => heard(before, one), undefined);

it("adds up what is said", () => {
  const found = after(
    event([["thinking", "h"]], { fresh: true }),
    event([["thinking", "m"], ["assistant", "Let me "]]),
    event([["assistant", "look."], ["tool_call", "", "a"], ["tool_call", "{"]]),
    event([["tool_call", "}"], ["tool_call", "", "b"]], { over: true }),
  );
  expect(found).toEqual({
    request: 0,
    over: true,
    parts: [
      { kind: "thinking", text: "hm", tool: null },
      { kind: "assistant", text: "Let me look.", tool: null },
      { kind: "tool_call", text: "{}", tool: "a" },
      { kind: "tool_call", text: "", tool: "b" },
    ],
  });
});

it("begins anew when it is told so", () => {
  const found = after(
    event([["assistant", "old"]], { fresh: true }),
    event([["assistant", "new"]], { fresh: true, request: 1 }),
  );
  expect(found?.request).toBe(1);
  expect(found?.parts.map((part) => part.text)).toEqual(["new"]);
});

it("shows where something was lost, and keeps the parts that there are", () => {
  const found = after(
    event([["gap", ""], ["assistant", "b"]], { fresh: true }),
    event([["gap", ""]]),
    event([["gap", ""], ["assistant", "d"]]),
  );
  expect(found?.parts.map((part) => part.text)).toEqual(["… b… d"]);
  expect(after(event([["assistant", "b"]]))?.parts[0]?.text).toBe("… b");
});

it("keeps one answer for each topic, and forgets it", () => {
  const answers = new SpokenAnswers();
  let told = 0;
  const stop = answers.subscribe(() => (told += 1));
  answers.take(event([["assistant", "a"]], { fresh: true }));
  const before = answers.get("chunks:1");
  answers.take(event([["assistant", "b"]]));
  expect(answers.get("chunks:1")).not.toBe(before);
  expect(answers.get("chunks:1")?.parts[0]?.text).toBe("ab");
  expect(answers.get("chunks:2")).toBeUndefined();
  stop();
  answers.take(event([["assistant", "c"]]));
  expect(told).toBe(2);
  answers.forget("chunks:1");
  expect(answers.get("chunks:1")).toBeUndefined();
});
