/** What the model of a turn says while it says it, added up from the events of the stream. */
import type { Schemas } from "../api/client";

export type ChunkEvent = Schemas["ChunkEvent"];

export interface Part {
  kind: string;
  text: string;
  tool: string | null;
}

export interface Spoken {
  /** The number of the request to the model. */
  request: number;
  over: boolean;
  parts: Part[];
}

const LOST = "… ";

/** What is known after an event: everything anew, or with what follows. */
export function heard(before: Spoken | undefined, event: ChunkEvent): Spoken {
  const parts = event.fresh || !before ? [] : [...before.parts];
  let lost = !event.fresh && !before;
  for (const { kind, text, tool } of event.parts) {
    if (kind === "gap") {
      lost = true;
      continue;
    }
    const last = parts.at(-1);
    const said = lost ? LOST + text : text;
    lost = false;
    if (last && last.kind === kind && !tool) parts[parts.length - 1] = { ...last, text: last.text + said };
    else parts.push({ kind, text: said, tool: tool ?? null });
  }
  return { request: event.request, over: event.over, parts };
}

/** The answers of the topics that the page listens to. */
export class SpokenAnswers {
  private readonly answers = new Map<string, Spoken>();
  private readonly listeners = new Set<() => void>();

  get(topic: string): Spoken | undefined {
    return this.answers.get(topic);
  }

  take(event: ChunkEvent): void {
    this.answers.set(event.topic, heard(this.answers.get(event.topic), event));
    this.listeners.forEach((listener) => listener());
  }

  forget(topic: string): void {
    this.answers.delete(topic);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}
