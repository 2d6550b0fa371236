import { describe, expect, it } from "vitest";
import { ago, bytes, cost, count, dateTime, duration, money, plural, shortId } from "./format";

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;

describe("duration", () => {
  it.each([
    [0, "0ms"],
    [-5, "0ms"],
    [999, "999ms"],
    [1000, "1.0s"],
    [9_999, "9.9s"],
    [59_999, "59s"],
    [4 * M + 5 * S, "4m 05s"],
    [2 * H + 3 * M, "2h 03m"],
    [3 * D + 4 * H, "3d 04h"],
    [Number.NaN, "–"],
  ])("%d ms is %s", (ms, text) => expect(duration(ms)).toBe(text));
});

describe("ago", () => {
  const now = Date.UTC(2026, 0, 2);
  it.each([
    [0, "just now"],
    [30 * S, "30s ago"],
    [5 * M, "5m ago"],
    [47 * H, "47h ago"],
    [3 * D, "3d ago"],
    [-5 * M, "in 5m"],
  ])("%d ms before now is %s", (ms, text) => expect(ago(now - ms, now)).toBe(text));
  it("says nothing of what is no time", () => expect(ago("soon", now)).toBe("–"));
});

describe("numbers", () => {
  it("groups thousands", () => expect(count(1234567)).toBe("1,234,567"));
  it.each([
    [0, "$0.00"],
    [0.00001, "< $0.0001"],
    [0.0042, "$0.0042"],
    [0.25, "$0.250"],
    [1234.5, "$1,234.50"],
    [-2, "-$2.00"],
  ])("%d dollars are %s", (usd, text) => expect(money(usd)).toBe(text));
  it.each([
    [512, "512 B"],
    [1536, "1.5 KB"],
    [20 * 1024, "20 KB"],
    [3 * 1024 ** 3, "3.0 GB"],
  ])("%d bytes are %s", (n, text) => expect(bytes(n)).toBe(text));
  it("does not call free what has no price", () => {
    expect(cost(0, 2)).toBe("no price");
    expect(cost(0, 0)).toBe("$0.00");
    expect(cost(1.5, 2)).toBe("$1.50");
  });
  it("counts things", () => {
    expect(plural(1, "run")).toBe("1 run");
    expect(plural(1200, "run")).toBe("1,200 runs");
    expect(plural(2, "entry", "entries")).toBe("2 entries");
  });
});

describe("names", () => {
  it("shortens ids to what finds them", () => {
    expect(shortId("01a1dffe-3b66-719f-8e20-4c84aa1f78f4")).toBe("01a1dffe-3b66");
    expect(shortId("nightly")).toBe("nightly");
  });
  it("writes exact times", () => {
    expect(dateTime("2026-08-01T10:20:30Z", "utc")).toBe("2026-08-01 10:20:30 UTC");
    expect(dateTime("never")).toBe("–");
  });
});
