/** The failed step behind a given one, round and round. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { api, unwrap } from "../../../api/client";
import { toast } from "../../../components/Toast";
import { topic } from "../queries";

export function useNextProblem(run: string) {
  const queries = useQueryClient();
  return useCallback(
    async (from: string | undefined): Promise<string | undefined> => {
      const page = await queries.fetchQuery({
        queryKey: [topic(run), "failures"],
        queryFn: () =>
          unwrap(
            api.GET("/api/v1/runs/{run}/rows", {
              params: { path: { run }, query: { state: ["failed", "dead_letter"], limit: 200 } },
            }),
          ),
      });
      // what stands in a failed step failed because of it
      const steps = page.items.filter((row) => row.path !== "" && !row.has_children);
      const paths = (steps.length ? steps : page.items).map((row) => row.path);
      if (paths.length === 0) toast("No step has failed");
      return paths[(paths.indexOf(from ?? "") + 1) % Math.max(paths.length, 1)];
    },
    [queries, run],
  );
}
