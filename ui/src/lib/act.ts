/** Doing something through the API: says what came of it, and reads again what has changed. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode } from "react";
import { unwrap } from "../api/client";
import { toast } from "../components/Toast";
import { type ApiAnswer } from "./query";

export interface ActOptions<I, O> {
  /** What to say when it is done; nothing without it. */
  done?: (answer: O, given: I) => ReactNode;
  /** The topics whose pages are to be read again. */
  topics: string[];
  onDone?: (answer: O, given: I) => void;
}

/** `const drain = useAct((id: string) => api.POST(…), {topics: ["workers"], done: () => "…"})` */
export function useAct<I, O>(act: (given: I) => ApiAnswer<O>, options: ActOptions<I, O>) {
  const queries = useQueryClient();
  return useMutation<O, Error, I>({
    mutationFn: (given) => unwrap(act(given)),
    onSuccess: (answer, given) => {
      const said = options.done?.(answer, given);
      if (said !== undefined) toast(said);
      for (const topic of options.topics) void queries.invalidateQueries({ queryKey: [topic] });
      options.onDone?.(answer, given);
    },
    onError: (error) => toast.error(error),
  });
}
