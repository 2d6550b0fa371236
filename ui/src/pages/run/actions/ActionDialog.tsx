/** One dialog for every action: what is filled in, what will happen, and only then the button. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { ApiError } from "../../../api/client";
import { Button } from "../../../components/Button";
import { CopyButton } from "../../../components/CopyButton";
import { Dialog } from "../../../components/Dialog";
import { Field } from "../../../components/Field";
import { Checkbox, Input } from "../../../components/Input";
import { missingFields } from "../../../components/SchemaForm";
import { Loading } from "../../../components/States";
import { toast } from "../../../components/Toast";
import { shortId } from "../../../lib/format";
import type { Run } from "../queries";
import { plain, Sentence } from "../../../components/Sentence";
import { useAct, useDryRun } from "./act";
import { useFormValues } from "./useFormValues";
import { ValueEditor, type Values } from "./ValueEditor";
import { type ActionForm, type Ask, edited, VERBS } from "./verbs";

const NOTHING: ActionForm = { reason: "", force: false };

export function ActionDialog({ run, ask, onClose }: { run: Run; ask: Ask | null; onClose: () => void }) {
  if (ask === null) return null;
  return <Asked key={`${ask.verb} ${ask.step ?? ""}`} run={run} ask={ask} onClose={onClose} />;
}

function Asked({ run, ask, onClose }: { run: Run; ask: Ask; onClose: () => void }) {
  const words = VERBS[ask.verb];
  const [values, setValues] = useState<Values | null | undefined>(undefined);
  const [reason, setReason] = useState("");
  const [force, setForce] = useState(false);
  const given = useFormValues(run, ask);
  const current = values === undefined ? given.initial : values;
  const form = formOf(ask, given.initial, current, reason, force);
  const lacks = given.schema && current ? missingFields(given.schema, current, given.schema) : [];
  const complete = lacks.length === 0 && (words.form !== "needed reason" || reason.trim() !== "");
  const ready = form !== null && complete;
  const dry = useDryRun(run.id, ask.verb, form ?? NOTHING, ready);
  const act = useAct(run.id, ask.verb);
  const confirm = () =>
    form !== null &&
    act.mutate(form, {
      onSuccess: (result) => {
        const made = result.run && result.run.id !== run.id ? result.run.id : null;
        toast(plain(result.sentence), made && <RunLink id={made} />);
        onClose();
      },
    });
  const refused = (act.error ?? (dry.settled ? dry.error : null)) as ApiError | null;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={words.title(ask.step)}
      size={given.shown ? "lg" : "md"}
      footer={
        <>
          {dry.data && (
            <CopyButton text={dry.data.command} label="Copy the command that does the same">
              Copy as command
            </CopyButton>
          )}
          <span className="flex-1" />
          <Button onClick={onClose}>Close</Button>
          <Button
            variant={words.danger ? "danger" : "primary"}
            disabled={!ready || !dry.settled || dry.isError}
            busy={act.isPending}
            onClick={confirm}
          >
            {words.button}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {given.shown && (given.initial === undefined ? <Loading label="Reading the values" /> : (
          <ValueEditor schema={given.schema} value={current ?? given.initial} onChange={setValues} />
        ))}
        {words.form?.includes("reason") && (
          <Reason needed={words.form === "needed reason"} value={reason} onChange={setReason} />
        )}
        <Consequence sentence={ready ? dry.data?.sentence : undefined} refused={refused} waits={!ready} />
        {words.force && (force || refused?.status === 409) && (
          <Checkbox
            checked={force}
            onChange={setForce}
            label="Also do again what cannot be taken back"
          />
        )}
      </div>
    </Dialog>
  );
}

function formOf(
  ask: Ask,
  before: Values | undefined,
  values: Values | null | undefined,
  reason: string,
  force: boolean,
): ActionForm | null {
  const kind = VERBS[ask.verb].form;
  const base: ActionForm = { step: ask.step ?? null, reason, force };
  if (kind !== "arguments" && kind !== "result") return base;
  if (values === null || values === undefined || before === undefined) return null;
  const sent = kind === "arguments" ? edited(before, values) : values;
  return { ...base, values: sent as ActionForm["values"] };
}

function Consequence(props: { sentence?: string; refused: ApiError | null; waits: boolean }) {
  const { sentence, refused, waits } = props;
  return (
    <div role="status" aria-live="polite" className="min-h-10 rounded-md bg-sunken px-3 py-2 text-[13px]">
      {refused ? (
        <span className="text-failed">
          <Sentence text={refused.message} />
          {refused.problem?.hint && <span className="block text-muted"><Sentence text={refused.problem.hint} /></span>}
        </span>
      ) : waits ? (
        <span className="text-muted">Fill in what is missing to see what will happen.</span>
      ) : (
        <span data-testid="consequence">
          <Sentence text={sentence ?? "Asking what would happen…"} />
        </span>
      )}
    </div>
  );
}

function Reason(props: { needed: boolean; value: string; onChange: (text: string) => void }) {
  return (
    <Field
      label="Reason"
      required={props.needed}
      hint={props.needed ? "It becomes the message of the error." : "Kept with the run."}
    >
      <Input value={props.value} onChange={(event) => props.onChange(event.target.value)} />
    </Field>
  );
}

function RunLink({ id }: { id: string }) {
  return (
    <Link to="/runs/$run" params={{ run: id }} search={{}} className="text-accent underline">
      Open run {shortId(id)}
    </Link>
  );
}
