/** The layout of a graph, made once for each shape and kept for the browser session. */
import { useEffect, useState } from "react";
import type { Boxes, LayoutEdge, LayoutNode } from "./layout";

interface Answer {
  key: string;
  boxes?: Boxes;
  error?: string;
}

const KEPT = "afl.layout.";
const memory = new Map<string, Boxes>();
const waiting = new Map<string, Promise<Boxes>>();
let worker: Worker | null = null;

function stored(key: string): Boxes | null {
  const known = memory.get(key);
  if (known) return known;
  try {
    const text = sessionStorage.getItem(KEPT + key);
    return text ? (JSON.parse(text) as Boxes) : null;
  } catch {
    return null;
  }
}

function keep(key: string, boxes: Boxes): void {
  memory.set(key, boxes);
  try {
    sessionStorage.setItem(KEPT + key, JSON.stringify(boxes));
  } catch {
    // a full storage only means that the layout is made again in the next tab
  }
}

function ask(key: string, nodes: LayoutNode[], edges: LayoutEdge[]): Promise<Boxes> {
  const asked = waiting.get(key);
  if (asked) return asked;
  worker ??= new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  const answering = worker;
  const answer = new Promise<Boxes>((resolve, reject) => {
    const listen = ({ data }: MessageEvent<Answer>) => {
      if (data.key !== key) return;
      answering.removeEventListener("message", listen);
      if (data.boxes) resolve(data.boxes);
      else reject(new Error(data.error));
    };
    answering.addEventListener("message", listen);
    answering.addEventListener("error", () => reject(new Error("The layout failed.")), {
      once: true,
    });
    answering.postMessage({ key, nodes, edges });
  });
  waiting.set(key, answer);
  return answer;
}

export function useLayout(key: string, nodes: LayoutNode[], edges: LayoutEdge[]) {
  const [found, setFound] = useState<{ key: string; boxes: Boxes | null; failed: boolean }>(() => ({
    key,
    boxes: stored(key),
    failed: false,
  }));
  useEffect(() => {
    const known = stored(key);
    if (known) {
      setFound({ key, boxes: known, failed: false });
      return;
    }
    let gone = false;
    ask(key, nodes, edges)
      .then((boxes) => {
        keep(key, boxes);
        if (!gone) setFound({ key, boxes, failed: false });
      })
      .catch(() => !gone && setFound({ key, boxes: null, failed: true }))
      .finally(() => waiting.delete(key));
    return () => {
      gone = true;
    };
    // the key names the shape: nodes and edges are the same whenever it is
  }, [key]);
  return found.key === key ? found : { key, boxes: null, failed: false };
}
