/**
 * One stream of changes for the page. Hooks name topics; their queries are read again when the
 * mark of a topic has changed. What models say comes on the same stream. The stream is read by fetch, so that it can carry the token.
 */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { token } from "../api/client";
import { backoff, type Change, EventParser, Marks } from "./marks";
import { type ChunkEvent, type Spoken, SpokenAnswers } from "./spoken";

export type LiveState = "live" | "reconnecting" | "paused";

/** In milliseconds, between two readings of the same topic. */
const BREATH = 250;

class Live {
  state: LiveState = "reconnecting";
  readonly spoken = new SpokenAnswers();
  private readonly users = new Map<string, number>();
  private readonly marks = new Marks();
  private readonly listeners = new Set<() => void>();
  /** The topics that are being read, and whether they have changed again since. */
  private readonly reading = new Map<string, boolean>();
  private queries: QueryClient | null = null;
  private abort: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private connected = "";
  private stopped = false;

  constructor() {
    document.addEventListener("visibilitychange", () => this.renew());
  }

  use(topics: string[], queries: QueryClient): () => void {
    this.queries = queries;
    for (const topic of topics) this.users.set(topic, (this.users.get(topic) ?? 0) + 1);
    this.soon();
    return () => {
      for (const topic of topics) {
        const left = (this.users.get(topic) ?? 1) - 1;
        if (left > 0) this.users.set(topic, left);
        else {
          this.users.delete(topic);
          this.marks.forget(topic);
          this.spoken.forget(topic);
        }
      }
      this.soon();
    };
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  pause(): void {
    this.stopped = true;
    this.renew();
  }

  resume(): void {
    this.stopped = false;
    this.failures = 0;
    this.renew();
  }

  /** A page swaps its topics in one go; the stream is opened once for all of them. */
  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.renew(), 30);
  }

  private renew(): void {
    clearTimeout(this.timer);
    const resting = this.stopped || document.hidden || this.users.size === 0;
    const topics = resting ? "" : [...this.users.keys()].sort().join("\n");
    if (topics && topics === this.connected && this.abort) return;
    this.abort?.abort();
    this.abort = null;
    this.connected = topics;
    if (resting) this.become("paused");
    else void this.open(topics.split("\n"));
  }

  private async open(topics: string[]): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    if (this.state !== "live") this.become("reconnecting");
    try {
      await this.read(topics, abort.signal);
    } catch {
      // told by the state below; the next try says more
    }
    if (abort.signal.aborted) return;
    this.abort = null;
    this.failures += 1;
    this.become("reconnecting");
    // without a stream, the waits between the tries become the rhythm of reading
    if (this.failures > 2) topics.forEach((topic) => void this.refresh(topic));
    this.timer = setTimeout(() => this.renew(), backoff(this.failures));
  }

  private async read(topics: string[], signal: AbortSignal): Promise<void> {
    const query = topics.map((topic) => `topic=${encodeURIComponent(topic)}`).join("&");
    const secret = token.get();
    const answer = await fetch(`/api/v1/stream?${query}`, {
      headers: {
        Accept: "text/event-stream",
        ...(secret ? { Authorization: `Bearer ${secret}` } : {}),
      },
      signal,
    });
    if (!answer.ok || !answer.body) throw new Error(`the stream answered ${answer.status}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      if (signal.aborted) return;
      this.failures = 0;
      this.become("live");
      parser.push(value).forEach((event) => this.take(event));
    }
  }

  private take(change: Change | ChunkEvent): void {
    if ("parts" in change) {
      this.spoken.take(change);
      return;
    }
    const news = this.marks.note(change);
    if (news === "changed") void this.refresh(change.topic);
    if (news === "first") void this.refresh(change.topic, change.mark);
  }

  /**
   * Reads again what belongs to a topic, except what already carries the mark. Changes that come
   * meanwhile are read once more afterwards: a busy system neither starves a page nor floods it.
   */
  private async refresh(topic: string, mark?: string): Promise<void> {
    if (this.reading.has(topic)) {
      this.reading.set(topic, true);
      return;
    }
    this.reading.set(topic, false);
    await this.queries?.invalidateQueries({
      predicate: (query) => {
        if (query.queryKey[0] !== topic) return false;
        const data = query.state.data as { mark?: unknown } | undefined;
        return mark === undefined || (data !== undefined && data.mark !== mark);
      },
    });
    await new Promise((resolve) => setTimeout(resolve, BREATH));
    const again = this.reading.get(topic);
    this.reading.delete(topic);
    if (again) await this.refresh(topic);
  }

  private become(state: LiveState): void {
    if (this.state === state) return;
    this.state = state;
    this.listeners.forEach((listener) => listener());
  }
}

export const live = new Live();

/** Keeps what a page shows fresh as long as the page is there. */
export function useLive(topics: string[]): LiveState {
  const queries = useQueryClient();
  const joined = topics.join("\n");
  useEffect(
    () => live.use(joined ? joined.split("\n") : [], queries),
    [joined, queries],
  );
  return useLiveState();
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(live.subscribe, () => live.state);
}

/** What the model of a turn says now; with `on`, the page listens to it. */
export function useSpoken(turn: string, on: boolean): Spoken | undefined {
  const topic = `chunks:${turn}`;
  useLive(on ? [topic] : []);
  return useSyncExternalStore(live.spoken.subscribe, () => live.spoken.get(topic));
}
