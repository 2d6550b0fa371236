/** Every try at the outside work of a step. */
import { stateText } from "../../../components/StateBadge";
import { useNow } from "../../../lib/time";
import { Elapsed, Time } from "../../../lib/time";
import { plural } from "../../../lib/format";
import type { Step } from "../queries";
import { PART_STYLES, partWords, rowParts } from "../timeline/spans";

export function Attempts({ step }: { step: Step }) {
  if (step.attempts.length === 0) return null;
  return (
    <section>
      <h3 className="mb-1 text-xs font-medium text-muted">{plural(step.attempts.length, "attempt")}</h3>
      {step.row.parts.length > 1 && <AttemptBar step={step} />}
      <ol className="mt-2 flex flex-col divide-y divide-line border-y border-line">
        {step.attempts.map((one) => (
          <li key={one.number} className="flex flex-col gap-0.5 py-1.5 text-[13px]">
            <span className="flex items-baseline gap-2">
              <span className="w-6 tabular-nums text-muted">{one.number}</span>
              <span className={`font-medium ${stateText(one.state)}`}>{one.state}</span>
              <span className="min-w-0 flex-1 truncate font-mono text-xs text-muted" title={one.worker ?? undefined}>
                {one.worker}
              </span>
              {(one.started_at ?? one.ended_at) && (
                <Time at={one.started_at ?? one.ended_at} className="text-xs text-muted" />
              )}
              {one.started_at && (
                <Elapsed
                  from={one.started_at}
                  to={one.ended_at}
                  className="w-14 text-right tabular-nums"
                />
              )}
            </span>
            {one.error && <span className="break-words pl-8 text-xs text-failed">{messageOf(one.error)}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}

function messageOf(error: Record<string, unknown>): string {
  const type = typeof error.type === "string" ? error.type : "";
  const message = typeof error.message === "string" ? error.message : JSON.stringify(error);
  return type ? `${type}: ${message}` : message;
}

/** Queued, tried and waited between tries, in proportion. */
function AttemptBar({ step }: { step: Step }) {
  const now = useNow();
  const parts = rowParts(step.row, now);
  const words = partWords(parts);
  return (
    <div role="img" aria-label={words.join(", ")} title={words.join(" · ")} className="flex h-2 gap-px overflow-hidden rounded">
      {parts.map((one, at) => (
        <span
          key={at}
          className={`min-w-[3px] ${PART_STYLES[one.part]}`}
          style={{ flexGrow: Math.max(one.to - one.from, 1), flexBasis: 0 }}
        />
      ))}
    </div>
  );
}
