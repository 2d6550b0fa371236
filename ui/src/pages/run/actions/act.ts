/** Asking the server what an action would do, and then to do it. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, type Schemas, unwrap } from "../../../api/client";
import { topic } from "../queries";
import type { ActionForm, Verb } from "./verbs";

function send(run: string, verb: Verb, form: ActionForm, dry: boolean, key?: string) {
  return unwrap(
    api.POST("/api/v1/runs/{run}/actions/{verb}", {
      params: {
        path: { run, verb },
        query: { dry_run: dry },
        header: key === undefined ? {} : { "idempotency-key": key },
      },
      body: form as Schemas["ActionForm"],
    }),
  );
}

/** What would happen; asked again when the form has been still for a moment. */
export function useDryRun(run: string, verb: Verb, form: ActionForm, ready: boolean) {
  const text = JSON.stringify(form);
  const still = useStill(text);
  const asked = useQuery({
    queryKey: ["dry run", run, verb, still],
    queryFn: () => send(run, verb, JSON.parse(still) as ActionForm, true),
    // never with what was in the form a moment ago
    enabled: ready && still === text,
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
  const settled = ready && still === text && !asked.isFetching;
  return { ...asked, settled };
}

export function useAct(run: string, verb: Verb) {
  const queries = useQueryClient();
  const [key] = useState(newKey);
  return useMutation({
    // the same key for every try: a lost answer does not do it twice
    mutationFn: (form: ActionForm) => send(run, verb, form, false, key),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: [topic(run)] });
      void queries.invalidateQueries({ queryKey: ["runs"] });
    },
  });
}

/** Random also on pages that came without TLS, where `crypto.randomUUID` is missing. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function useStill(text: string): string {
  const [still, setStill] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setStill(text), 300);
    return () => clearTimeout(timer);
  }, [text]);
  return still;
}
