/** Why the run is where it is, in one sentence, and what helps. */
import { Info, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { CopyButton } from "../../../components/CopyButton";
import { Command } from "../../../components/States";
import { plural } from "../../../lib/format";
import type { Why } from "../queries";
import { Sentence } from "../../../components/Sentence";

const PROBLEM = new Set(["failed", "canceled"]);

export function WhyLine({ why, onStep }: { why: Why; onStep: (path: string) => void }) {
  const [all, setAll] = useState(false);
  const [first, ...others] = why.answers;
  const sentence = first?.sentence ?? why.sentence;
  if (!sentence) return null;
  const bad = PROBLEM.has(why.state);
  const Icon = bad ? TriangleAlert : Info;
  return (
    <section
      aria-label="Why"
      className={`mx-6 mt-3 rounded-md border bg-surface px-3 py-1.5 text-[13px] ${bad ? "border-failed/50" : "border-line"}`}
    >
      <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
        <Icon aria-hidden size={15} className={bad ? "text-failed" : "text-muted"} />
        <span className="min-w-0 flex-1 basis-96 break-words" data-testid="why">
          <Sentence text={sentence} step={first?.step} onStep={onStep} />
        </span>
        {others.length > 0 && (
          <button
            aria-expanded={all}
            className="text-xs text-accent hover:underline"
            onClick={() => setAll(!all)}
          >
            {all ? "show less" : `and ${why.more ? "more than " : ""}${others.length} more`}
          </button>
        )}
        {first?.command && (
          <>
            <span className="hidden xl:block">
              <Command text={first.command} />
            </span>
            <span className="xl:hidden" title={first.command}>
              <CopyButton text={first.command} label="Copy the command that helps">
                Copy command
              </CopyButton>
            </span>
          </>
        )}
      </div>
      {all && (
        <ul className="mt-1 flex max-h-48 flex-col gap-1 overflow-y-auto border-t border-line pt-1.5">
          {others.map((one, at) => (
            <li key={at} className="flex flex-wrap items-center gap-x-3 gap-y-1">
              <span className="min-w-0 flex-1">
                <Sentence text={one.sentence} step={one.step} onStep={onStep} />
              </span>
              {one.command && <Command text={one.command} />}
            </li>
          ))}
          {why.more && <li className="text-xs text-muted">{plural(others.length + 1, "answer")} shown; there are more.</li>}
        </ul>
      )}
    </section>
  );
}
