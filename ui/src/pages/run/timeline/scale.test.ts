import { describe, expect, it } from "vitest";
import { makeScale, ticks } from "./scale";

const whole = { from: 0, to: 1000 };
const busy = [
  { from: 0, to: 100 },
  { from: 900, to: 1000 },
];

describe("scale", () => {
  it("is straight when idle time is drawn", () => {
    const scale = makeScale(whole, busy, false);
    expect(scale.place(250)).toBe(0.25);
    expect(scale.breaks).toEqual([]);
  });

  it("draws a long gap short, and says how long it was", () => {
    const scale = makeScale(whole, busy, true);
    expect(scale.breaks.map((one) => one.ms)).toEqual([800]);
    expect(scale.place(100)).toBeGreaterThan(0.4);
    expect(scale.place(900)).toBeLessThan(0.6);
    expect(scale.place(1000)).toBeCloseTo(1);
  });

  it("keeps the order of times", () => {
    const scale = makeScale(whole, busy, true);
    const places = Array.from({ length: 101 }, (_, at) => scale.place(at * 10));
    expect(places).toEqual([...places].sort((a, b) => a - b));
  });

  it("has ticks that do not crowd", () => {
    const found = ticks(makeScale(whole, busy, true), 8);
    expect(found.length).toBeGreaterThan(2);
    expect(found.length).toBeLessThan(10);
  });
});
