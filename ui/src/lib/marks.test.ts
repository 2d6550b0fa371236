import { describe, expect, it } from "vitest";
import { backoff, EventParser, Marks } from "./marks";

const event = (topic: string, mark: string) =>
  `event: mark\nid: 1\ndata: ${JSON.stringify({ topic, mark })}\n\n`;

describe("EventParser", () => {
  it("reads events that come in pieces", () => {
    const parser = new EventParser();
    const text = event("home", "a") + event("run:1", "b");
    const found = [...text].flatMap((letter) => parser.push(letter));
    expect(found).toEqual([
      { topic: "home", mark: "a" },
      { topic: "run:1", mark: "b" },
    ]);
  });
  it("passes over signs of life and what it does not know", () => {
    const parser = new EventParser();
    expect(parser.push(":\n\nretry: 1000\n\ndata: not json\n\ndata: {}\n\n")).toEqual([]);
    expect(parser.push(event("runs", "c").replaceAll("\n", "\r\n"))).toEqual([
      { topic: "runs", mark: "c" },
    ]);
  });
  it("reads what models say among them", () => {
    const said = { topic: "chunks:1", request: 0, fresh: true, over: false, parts: [] };
    const text = `event: chunk\ndata: ${JSON.stringify(said)}\n\n`;
    expect(new EventParser().push(event("home", "a") + text)).toEqual([
      { topic: "home", mark: "a" },
      said,
    ]);
  });
  it("finds the end of a line that was cut in two", () => {
    const parser = new EventParser();
    const text = event("runs", "c").replaceAll("\n", "\r\n");
    const cut = text.length - 1;
    expect(parser.push(text.slice(0, cut))).toHaveLength(0);
    expect(parser.push(text.slice(cut))).toHaveLength(1);
  });
});

describe("Marks", () => {
  it("tells news from what is known", () => {
    const marks = new Marks();
    expect(marks.note({ topic: "runs", mark: "1" })).toBe("first");
    expect(marks.note({ topic: "runs", mark: "1" })).toBe("same");
    expect(marks.note({ topic: "runs", mark: "2" })).toBe("changed");
    expect(marks.note({ topic: "home", mark: "2" })).toBe("first");
  });
  it("knows nothing of a topic that nobody followed meanwhile", () => {
    const marks = new Marks();
    marks.note({ topic: "runs", mark: "1" });
    marks.forget("runs");
    expect(marks.note({ topic: "runs", mark: "1" })).toBe("first");
  });
});

describe("backoff", () => {
  it("grows and has an end", () => {
    expect([1, 2, 3, 10].map((failures) => backoff(failures, 0))).toEqual([500, 1000, 2000, 10_000]);
    expect(backoff(10, 1)).toBe(7500);
  });
});
