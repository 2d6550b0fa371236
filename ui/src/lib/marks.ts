/** What the stream of changes says, without the network: parsing, marks and waiting times. */

import type { ChunkEvent } from "./spoken";

export interface Change {
  topic: string;
  mark: string;
}

/** Takes the text of a stream in pieces and gives back the changes in it, and what models say. */
export class EventParser {
  private rest = "";

  push(text: string): (Change | ChunkEvent)[] {
    this.rest = (this.rest + text).replaceAll("\r\n", "\n");
    const blocks = this.rest.split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map(read).filter((found) => found !== null);
  }
}

function read(block: string): Change | ChunkEvent | null {
  const data = block
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trimStart())
    .join("\n");
  if (!data) return null;
  try {
    const value = JSON.parse(data) as Partial<Change> & Partial<ChunkEvent>;
    if (typeof value.topic !== "string") return null;
    if (Array.isArray(value.parts)) return value as ChunkEvent;
    if (value.mark === undefined) return null;
    return { topic: value.topic, mark: String(value.mark) };
  } catch {
    return null;
  }
}

/** Remembers the mark of each topic, and says whether a change is news. */
export class Marks {
  private readonly known = new Map<string, string>();

  /** "first" is a topic that nothing was known of: what was read before may be older. */
  note({ topic, mark }: Change): "first" | "changed" | "same" {
    const before = this.known.get(topic);
    this.known.set(topic, mark);
    if (before === undefined) return "first";
    return before === mark ? "same" : "changed";
  }

  forget(topic: string): void {
    this.known.delete(topic);
  }
}

/** Doubles from half a second to ten, with up to a quarter less so that pages do not march. */
export function backoff(failures: number, random: number = Math.random()): number {
  const full = Math.min(10_000, 500 * 2 ** Math.max(0, failures - 1));
  return Math.round(full * (1 - random / 4));
}
