/** Numbers, times and names as people read them. Nothing here knows of React. */

type When = string | number | Date;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something took: at most two units, such as `4m 05s`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 0) return duration(0);
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`;
  if (ms < MINUTE) return `${Math.floor(ms / 1000)}s`;
  if (ms < HOUR) return two(ms, MINUTE, "m", 1000, "s");
  if (ms < DAY) return two(ms, HOUR, "h", MINUTE, "m");
  return two(ms, DAY, "d", HOUR, "h");
}

function two(ms: number, large: number, first: string, small: number, second: string): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)}${first} ${String(rest).padStart(2, "0")}${second}`;
}

/** How long ago, or in how long, in one unit. */
export function ago(date: When, now: number = Date.now()): string {
  const passed = now - new Date(date).getTime();
  if (!Number.isFinite(passed)) return "–";
  const size = Math.abs(passed);
  if (size < 5_000) return "just now";
  const text = one(size);
  return passed > 0 ? `${text} ago` : `in ${text}`;
}

function one(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / 1000)}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)}h`;
  return `${Math.floor(ms / DAY)}d`;
}

/** The exact time, sortable by eye, in the reader's zone or in UTC. */
export function dateTime(date: When, zone: "local" | "utc" = "local"): string {
  const at = new Date(date);
  if (Number.isNaN(at.getTime())) return "–";
  if (zone === "utc") return `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const pad = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return `${day} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

const whole = new Intl.NumberFormat("en-US");

export function count(n: number): string {
  return whole.format(n);
}

/** US dollars; small sums keep the digits that tell them apart. */
export function money(usd: number): string {
  if (usd === 0) return "$0.00";
  const digits = Math.abs(usd) < 0.01 ? 4 : Math.abs(usd) < 1 ? 3 : 2;
  if (Math.abs(usd) < 0.0001) return usd < 0 ? "> -$0.0001" : "< $0.0001";
  const sign = usd < 0 ? "-" : "";
  const text = Math.abs(usd).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${sign}$${text}`;
}

/** What was spent, unless nothing of it has a price: then nobody knows. */
export function cost(usd: number, unpriced: number): string {
  return usd === 0 && unpriced > 0 ? "no price" : money(usd);
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = n / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** The beginning of an id, by which it can be found: it is the time to the millisecond. */
export function shortId(id: string): string {
  return id.length <= 16 ? id : id.slice(0, 13);
}

/** `1 run`, `2 runs`. */
export function plural(n: number, one: string, many: string = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
