/** What a step was given or gave; the whole of a large value only when it is asked for. */
import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "../../../api/client";
import { JsonView } from "../../../components/JsonView";
import { Empty } from "../../../components/States";
import { useState } from "react";
import { bytes } from "../../../lib/format";
import { type Step, topic } from "../queries";

export function PayloadTab({ step, which }: { step: Step; which: "input" | "output" }) {
  const [wanted, setWanted] = useState<string | null>(null);
  const { path } = step.row;
  const full = useQuery({
    queryKey: [topic(step.run), "whole", which, path],
    enabled: wanted === `${which} ${path}`,
    queryFn: () =>
      unwrap(
        api.GET(which === "input" ? "/api/v1/runs/{run}/step/input" : "/api/v1/runs/{run}/step/output", {
          params: { path: { run: step.run }, query: { path } },
        }),
      ),
  });
  const shown = wanted === `${which} ${path}` && full.data ? full.data : step[which];
  if (!shown) {
    return (
      <Empty
        title={step.row.ended_at ? "It gave nothing" : "No output yet"}
        hint={step.row.ended_at ? undefined : "It appears here when the step is done."}
      />
    );
  }
  return (
    <div className="flex flex-col gap-2">
      <JsonView
        value={shown.value}
        truncated={shown.truncated}
        bytes={shown.bytes}
        onLoadFull={() => setWanted(`${which} ${path}`)}
        label={which === "input" ? "Input" : "Output"}
      />
      <p className="text-right text-xs text-muted">{bytes(shown.bytes)}</p>
    </div>
  );
}
