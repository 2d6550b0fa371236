/** Whether the server has all that it needs. */
import { CircleCheck, CircleX } from "lucide-react";
import { api } from "../../api/client";
import { Sentence } from "../../components/Sentence";
import { Command, QueryState } from "../../components/States";
import { useApi } from "../../lib/query";
import { Fact } from "./Fact";

export function HealthTab() {
  const health = useApi(["health"], (signal) => api.GET("/api/v1/health", { signal }), { every: 10_000 });
  return (
    <QueryState query={health}>
      {(data) => (
        <>
          <dl className="flex flex-wrap gap-8 rounded-lg border border-line bg-surface px-4 py-3 text-[13px]">
            <Fact word="Version" value={data.version} />
            <Fact word="Database" value={data.database} />
            <Fact word="Server" value={data.mode === "dev" ? "afl dev" : "afl serve"} />
            <Fact word="Callers" value={data.auth ? "need a token" : "this machine alone, without tokens"} />
          </dl>
          <ul className="overflow-hidden rounded-lg border border-line bg-surface">
            {data.checks.map((check, at) => (
              <li key={at} className="flex items-start gap-3 border-b border-line px-4 py-2.5 last:border-0">
                {check.ok ? (
                  <CircleCheck aria-label="fine" size={16} className="mt-0.5 shrink-0 text-done" />
                ) : (
                  <CircleX aria-label="not fine" size={16} className="mt-0.5 shrink-0 text-failed" />
                )}
                <span className="w-32 shrink-0 text-[13px] font-medium">{check.name}</span>
                <span className="min-w-0 flex-1 text-[13px]">
                  <Sentence text={check.sentence} />
                  {check.hint && (
                    <span className="mt-1 block">
                      <Command text={/`([^`]+)`/.exec(check.hint)?.[1] ?? check.hint} />
                    </span>
                  )}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </QueryState>
  );
}
