/** What can be done to the selected runs. Nothing is done before a preview has said what. */
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Ban, type LucideIcon, Pause, Play, RotateCcw, RotateCw, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api, type Schemas, unwrap } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Input } from "../../components/Input";
import { StateBadge } from "../../components/StateBadge";
import { Loading, Refused } from "../../components/States";
import { toast } from "../../components/Toast";
import { count, plural, shortId } from "../../lib/format";

type BulkForm = Schemas["BulkForm"];
type Verb = BulkForm["verb"];
/** Which runs: named ones, or all that match filters. */
export type Chosen = Partial<Omit<BulkForm, "verb" | "reason">>;

const VERBS: { verb: Verb; name: string; icon: LucideIcon; danger?: boolean }[] = [
  { verb: "cancel", name: "Cancel", icon: Ban, danger: true },
  { verb: "pause", name: "Pause", icon: Pause },
  { verb: "resume", name: "Resume", icon: Play },
  { verb: "retry", name: "Retry", icon: RotateCcw },
  { verb: "rerun", name: "Rerun", icon: RotateCw },
];

export function BulkBar({
  selected,
  all,
  total,
  chosen,
  onAll,
  onClear,
}: {
  /** How many rows are selected one by one. */
  selected: number;
  /** Whether all that match are meant instead. */
  all: boolean;
  total: string | undefined;
  chosen: () => Chosen;
  /** Selects all that match; undefined when the rows are all there is. */
  onAll?: () => void;
  onClear: () => void;
}) {
  const [verb, setVerb] = useState<Verb | null>(null);
  return (
    <div
      role="region"
      aria-label="Actions on the selected runs"
      className="flex flex-wrap items-center gap-2 rounded-lg border border-accent bg-accent-soft px-3 py-1.5 text-[13px]"
    >
      <span role="status" className="font-medium">
        {all ? `All ${total ?? ""} matching runs` : `${plural(selected, "run")} selected`}
      </span>
      {!all && onAll && (
        <Button variant="ghost" size="sm" onClick={onAll} className="!text-accent">
          Select all {total} that match
        </Button>
      )}
      <span className="ml-auto flex flex-wrap gap-1.5">
        {VERBS.map((each) => (
          <Button
            key={each.verb}
            size="sm"
            icon={each.icon}
            variant={each.danger ? "danger" : "secondary"}
            onClick={() => setVerb(each.verb)}
          >
            {each.name}…
          </Button>
        ))}
        <Button
          size="sm"
          variant="ghost"
          icon={X}
          aria-label="Clear the selection"
          title="Clear the selection"
          onClick={onClear}
        />
      </span>
      {verb && <BulkDialog verb={verb} chosen={chosen()} onClose={() => setVerb(null)} />}
    </div>
  );
}

function BulkDialog({
  verb,
  chosen,
  onClose,
}: {
  verb: Verb;
  chosen: Chosen;
  onClose: () => void;
}) {
  const [reason, setReason] = useState("");
  const navigate = useNavigate();
  // the same request twice is one job: the key is of this dialog
  const key = useRef(crypto.randomUUID());
  const form = (): BulkForm => ({ top_only: false, ...chosen, verb, reason });
  const preview = useMutation({
    mutationFn: () => unwrap(api.POST("/api/v1/bulk/preview", { body: form() })),
  });
  const start = useMutation({
    mutationFn: () =>
      unwrap(
        api.POST("/api/v1/bulk", {
          body: form(),
          params: { header: { "idempotency-key": key.current } },
        }),
      ),
    onSuccess: (job) => void navigate({ to: "/bulk/$job", params: { job: job.id } }),
    onError: (error) => toast.error(error),
  });
  const { mutate } = preview;
  useEffect(() => mutate(), [mutate]);
  const { name } = VERBS.find((each) => each.verb === verb) ?? { name: verb };
  const many = preview.data?.matching ?? 0;
  const more = preview.data && !preview.data.exact ? "+" : "";
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`${name} runs`}
      footer={
        <>
          <Button onClick={onClose}>Leave them</Button>
          <Button
            variant={verb === "cancel" ? "danger" : "primary"}
            busy={start.isPending}
            disabled={many === 0}
            onClick={() => start.mutate()}
          >
            {preview.data ? `${name} ${count(many)}${more} ${many === 1 ? "run" : "runs"}` : name}
          </Button>
        </>
      }
    >
      {preview.error ? (
        <Refused
          problem={"problem" in preview.error ? (preview.error.problem as never) : null}
          onRetry={() => preview.mutate()}
        />
      ) : !preview.data ? (
        <Loading label="Looking which runs match" />
      ) : (
        <div className="flex flex-col gap-4">
          <p>{preview.data.sentence}</p>
          {preview.data.sample.length > 0 && <Sample preview={preview.data} />}
          <Field label="Reason" hint="Kept in the audit log.">
            <Input value={reason} onChange={(event) => setReason(event.target.value)} />
          </Field>
        </div>
      )}
    </Dialog>
  );
}

function Sample({ preview }: { preview: Schemas["BulkPreview"] }) {
  const rest = preview.matching - preview.sample.length;
  return (
    <ul className="rounded-md border border-line">
      {preview.sample.map((run) => (
        <li
          key={run.id}
          className="flex h-8 items-center gap-3 border-b border-line px-3 text-[13px] last:border-0"
        >
          <StateBadge state={run.state} size="sm" />
          <span className="min-w-0 flex-1 truncate">{run.workflow}</span>
          <span className="font-mono text-xs text-muted" title={run.id}>
            {shortId(run.id)}
          </span>
        </li>
      ))}
      {rest > 0 && (
        <li className="px-3 py-1.5 text-xs text-muted">
          and {count(rest)}
          {preview.exact ? "" : " or"} more
        </li>
      )}
    </ul>
  );
}
