/** What went wrong, where, and how the program got there. */
import { CopyButton } from "../../../components/CopyButton";
import { JsonView } from "../../../components/JsonView";
import type { Step } from "../queries";
import type { Patch } from "../search";
import { SourceLink } from "./SourceLink";

const KNOWN = new Set(["type", "message", "stack", "traceback", "step"]);

export function ErrorTab({ step, patch }: { step: Step; patch: Patch }) {
  const error = step.error ?? {};
  const text = (name: string) => (typeof error[name] === "string" ? (error[name] as string) : null);
  const stack = text("stack") ?? text("traceback");
  const began = text("step");
  const rest = Object.fromEntries(Object.entries(error).filter(([name]) => !KNOWN.has(name)));
  return (
    <div className="flex flex-col gap-3 text-[13px]">
      <div>
        <p className="font-mono text-xs text-failed">{text("type") ?? "Error"}</p>
        <p className="mt-1 whitespace-pre-wrap break-words font-medium">{text("message")}</p>
      </div>
      {began !== null && began !== step.row.path && began !== "" && (
        <p className="text-muted">
          It began in{" "}
          <button
            className="font-mono text-xs text-accent hover:underline"
            onClick={() => patch({ step: began, panel: undefined })}
          >
            {began}
          </button>
          .
        </p>
      )}
      {step.source_line !== null && (
        <p className="flex gap-2 text-muted">
          Written in <SourceLink step={step} patch={patch} />
        </p>
      )}
      {stack && <Stack text={stack} />}
      {Object.keys(rest).length > 0 && <JsonView value={rest} label="Details" />}
    </div>
  );
}

function Stack({ text }: { text: string }) {
  return (
    <div className="relative rounded-md border border-line bg-sunken">
      <div className="absolute right-1 top-1">
        <CopyButton text={text} label="Copy the stack" />
      </div>
      <pre
        tabIndex={0}
        role="region"
        aria-label="Stack"
        className="max-h-96 overflow-auto px-3 py-2 font-mono text-xs leading-5"
      >
        {text}
      </pre>
    </div>
  );
}
