/** From times to places on the axis. Stretches in which nothing ran can be drawn short. */

export interface Span {
  from: number;
  to: number;
}

export interface Tick {
  at: number;
  /** 0 to 1 */
  place: number;
}

export interface Scale {
  from: number;
  to: number;
  /** 0 to 1 */
  place: (time: number) => number;
  /** where time was left out, 0 to 1, and how much */
  breaks: { place: number; ms: number }[];
}

/** A gap is left out when it is more than this part of the whole. */
const LONG = 0.08;
/** How wide a gap is drawn that was left out. */
const SHORT = 0.015;

export function makeScale(whole: Span, busy: Iterable<Span>, collapse: boolean): Scale {
  const length = Math.max(whole.to - whole.from, 1);
  const gaps = collapse ? gapsOf(whole, busy, length * LONG) : [];
  const idle = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const unit = length - idle + gaps.length * length * SHORT;
  const place = (time: number) => {
    let drawn = Math.min(Math.max(time, whole.from), whole.to) - whole.from;
    for (const gap of gaps) {
      if (time <= gap.from) break;
      const inside = Math.min(time, gap.to) - gap.from;
      drawn += (inside / (gap.to - gap.from)) * length * SHORT - inside;
    }
    return drawn / unit;
  };
  return {
    ...whole,
    place,
    breaks: gaps.map((gap) => ({
      place: (place(gap.from) + place(gap.to)) / 2,
      ms: gap.to - gap.from,
    })),
  };
}

function gapsOf(whole: Span, busy: Iterable<Span>, least: number): Span[] {
  const spans = [...busy].sort((a, b) => a.from - b.from);
  const gaps: Span[] = [];
  let until = whole.from;
  for (const span of [...spans, { from: whole.to, to: whole.to }]) {
    if (span.from - until > least) gaps.push({ from: until, to: span.from });
    until = Math.max(until, span.to);
  }
  return gaps;
}

const SECOND = 1000;
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  10800, 21600, 43200, 86400,
].map((step, at) => (at < 9 ? step : step * SECOND));

/** Round times, about `most` of them, none too close to the one before. */
export function ticks(scale: Scale, most: number): Tick[] {
  const length = scale.to - scale.from;
  const step = STEPS.find((one) => length / one <= most) ?? Math.ceil(length / most / 86_400_000) * 86_400_000;
  const found: Tick[] = [];
  for (let at = 0; at <= length; at += step) {
    const place = scale.place(scale.from + at);
    const last = found.at(-1);
    if (last === undefined || place - last.place > 0.8 / most) found.push({ at, place });
  }
  return found;
}
