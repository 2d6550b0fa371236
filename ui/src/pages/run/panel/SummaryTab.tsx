/** Where a step is, why, and who has worked on it. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { CopyButton } from "../../../components/CopyButton";
import { Command } from "../../../components/States";
import { shortId } from "../../../lib/format";
import { Elapsed, Time } from "../../../lib/time";
import type { Step } from "../queries";
import { kindWord } from "../rows/words";
import type { Patch } from "../search";
import { Sentence } from "../../../components/Sentence";
import { Attempts } from "./Attempts";
import { SourceLink } from "./SourceLink";

export function SummaryTab({ step, patch }: { step: Step; patch: Patch }) {
  const { row } = step;
  return (
    <div className="flex flex-col gap-4">
      <StepWhy step={step} patch={patch} />
      <dl className="grid grid-cols-[7.5rem_minmax(0,1fr)] gap-x-3 gap-y-1.5 text-[13px]">
        <Item name={row.facet ? "Facet" : "Kind"}>{row.facet || kindWord(row.kind)}</Item>
        <Item name="Created">
          <Time at={row.created_at} />
        </Item>
        {row.started_at && (
          <Item name="Started">
            <Time at={row.started_at} />
          </Item>
        )}
        <Item name={row.ended_at ? "Took" : "So far"}>
          <Elapsed from={row.started_at ?? row.created_at} to={row.ended_at} />
        </Item>
        <Item name="Worker">{step.worker && <span className="font-mono text-xs">{step.worker}</span>}</Item>
        <Item name="Lease until">{step.lease_until && <Time at={step.lease_until} />}</Item>
        <Item name="Deadline">{step.deadline && <Time at={step.deadline} />}</Item>
        <Item name="Idempotency key">
          {step.idempotency_key && <Id text={step.idempotency_key} />}
        </Item>
        <Item name="Taken over from">{row.reused && <Reused from={row.reused} />}</Item>
        <Item name="Called run">{step.child_run && <RunRef id={step.child_run} />}</Item>
        <Item name="Turn">
          {step.turn && (
            <button className="text-accent hover:underline" onClick={() => patch({ panel: "llm" })}>
              transcript
            </button>
          )}
        </Item>
        <Item name="Source">
          {step.source_line !== null && <SourceLink step={step} patch={patch} />}
        </Item>
      </dl>
      <Attempts step={step} />
    </div>
  );
}

function StepWhy({ step, patch }: { step: Step; patch: Patch }) {
  const { row, why } = step;
  if (row.skipped_because !== null) {
    const path = row.skipped_because;
    return (
      <p className="text-[13px]">
        It never ran, because{" "}
        <button
          className="font-mono text-xs text-accent hover:underline"
          onClick={() => patch({ step: path, panel: undefined })}
        >
          {path}
        </button>{" "}
        failed.
      </p>
    );
  }
  if (row.state === "done" || why.answers.length === 0) return null;
  return (
    <ul className="flex flex-col gap-2 rounded-md border border-line px-3 py-2 text-[13px]">
      {why.answers.map((one, at) => (
        <li key={at} className="flex flex-col items-start gap-1">
          <span className="break-words">
            <Sentence text={one.sentence} />
          </span>
          {one.command && <Command text={one.command} />}
        </li>
      ))}
    </ul>
  );
}

function Item({ name, children }: { name: string; children: ReactNode }) {
  if (!children) return null;
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  );
}

function Id({ text }: { text: string }) {
  return (
    <span className="flex items-center gap-1">
      <span className="min-w-0 truncate font-mono text-xs" title={text}>
        {text}
      </span>
      <CopyButton text={text} label="Copy the key" className="!h-5 !w-5" />
    </span>
  );
}

function Reused({ from }: { from: string }) {
  return from === "cache" ? <>the cache</> : <RunRef id={from} />;
}

function RunRef({ id }: { id: string }) {
  return (
    <Link
      to="/runs/$run"
      params={{ run: id }}
      search={{}}
      title={id}
      className="font-mono text-xs text-accent hover:underline"
    >
      {shortId(id)}
    </Link>
  );
}
