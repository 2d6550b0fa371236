/** A new schedule: what to start, when, and what happens when times are missed. */
import { useMemo, useState } from "react";
import { api, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Input, Select } from "../../components/Input";
import { initialValue, SchemaForm } from "../../components/SchemaForm";
import { useAct } from "../../lib/act";
import { dateTime } from "../../lib/format";
import { useApi } from "../../lib/query";
import { parametersSchema, parseLabels } from "../runs/newRun";
import { cronWords } from "./words";

type Form = Schemas["ScheduleForm"];
type Kind = "cron" | "every" | "at";

const KINDS: Record<Kind, { word: string; example: string; hint: string }> = {
  cron: { word: "At times of a calendar", example: "0 3 * * *", hint: "minute hour day month weekday" },
  every: { word: "Again and again", example: "15m", hint: "a duration, such as 15m or 6h" },
  at: { word: "Once", example: "2027-01-31T09:00", hint: "a time in the zone" },
};

export function ScheduleDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="New schedule" size="lg">
      {open && <Body onDone={() => onOpenChange(false)} />}
    </Dialog>
  );
}

function Body({ onDone }: { onDone: () => void }) {
  const programs = useApi(["programs"], (signal) => api.GET("/api/v1/programs", { signal }));
  const choices = useMemo(
    () =>
      (programs.data ?? []).flatMap((program) =>
        program.workflows.map((workflow) => ({ program: program.name, workflow })),
      ),
    [programs.data],
  );
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState(0);
  const [kind, setKind] = useState<Kind>("cron");
  const [spec, setSpec] = useState("");
  const [zone, setZone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");
  const [overlap, setOverlap] = useState("skip");
  const [catchUp, setCatchUp] = useState("last");
  const [labelText, setLabelText] = useState("");
  const [inputs, setInputs] = useState<unknown>({});
  const labels = parseLabels(labelText);
  const choice = choices[chosen];
  const schema = useMemo(() => parametersSchema(choice?.workflow.parameters ?? []), [choice]);
  const form: Form = {
    name: name.trim(),
    workflow: choice?.workflow.name ?? "",
    program: choice?.program ?? "default",
    inputs: (Object.keys((inputs ?? {}) as object).length > 0 ? inputs : initialValue(schema, schema)) as never,
    [kind]: spec.trim(),
    zone,
    overlap,
    catch_up: catchUp,
    labels: labels ?? {},
    replace: false,
  };
  const ready = form.name !== "" && form.workflow !== "" && spec.trim() !== "" && labels !== null;
  const preview = useApi(
    ["schedule-preview", kind, spec.trim(), zone, form.workflow],
    (signal) => api.POST("/api/v1/schedules/preview", { body: { ...form, name: form.name || "preview" }, signal }),
    { enabled: spec.trim() !== "" && form.workflow !== "" },
  );
  const create = useAct((body: Form) => api.POST("/api/v1/schedules", { body }), {
    topics: ["schedules"],
    done: (made) => `${made.name} starts ${made.workflow} from now on.`,
    onDone,
  });
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) create.mutate(form);
      }}
    >
      <div className="grid grid-cols-2 gap-3">
        <Field label="Name" required>
          <Input value={name} onChange={(event) => setName(event.target.value)} placeholder="nightly-report" />
        </Field>
        <Field label="Workflow" required>
          <Select value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
            {choices.map((one, at) => (
              <option key={`${one.program} ${one.workflow.name}`} value={at}>
                {one.workflow.name}
                {one.program === "default" ? "" : ` (${one.program})`}
              </option>
            ))}
          </Select>
        </Field>
        <Field label="How often">
          <Select value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
            {Object.entries(KINDS).map(([value, one]) => (
              <option key={value} value={value}>
                {one.word}
              </option>
            ))}
          </Select>
        </Field>
        <Field
          label={kind === "cron" ? "Cron" : kind === "every" ? "Every" : "At"}
          required
          hint={kind === "cron" && spec ? cronWords(spec) : KINDS[kind].hint}
          error={preview.error && spec ? preview.error.message : undefined}
        >
          <Input
            className="font-mono"
            value={spec}
            placeholder={KINDS[kind].example}
            onChange={(event) => setSpec(event.target.value)}
          />
        </Field>
        <Field label="Time zone">
          <Input value={zone} onChange={(event) => setZone(event.target.value)} />
        </Field>
        <Field label="If the last run still goes on">
          <Select value={overlap} onChange={(event) => setOverlap(event.target.value)}>
            <option value="skip">leave this time out</option>
            <option value="queue">start it afterwards</option>
            <option value="allow">start it beside</option>
            <option value="cancel">cancel the last one</option>
          </Select>
        </Field>
        <Field label="Times that were missed">
          <Select value={catchUp} onChange={(event) => setCatchUp(event.target.value)}>
            <option value="last">start the last of them</option>
            <option value="all">start all of them</option>
            <option value="none">leave them out</option>
          </Select>
        </Field>
        <Field
          label="Labels of its runs"
          hint="name=value, several with spaces between them"
          error={labels === null ? "Write labels as name=value." : undefined}
        >
          <Input
            value={labelText}
            placeholder="team=books"
            onChange={(event) => setLabelText(event.target.value)}
          />
        </Field>
      </div>
      {choice && choice.workflow.parameters.length > 0 && (
        <fieldset className="rounded-md border border-line p-3">
          <legend className="px-1 text-xs text-muted">Inputs of every run</legend>
          <SchemaForm schema={schema} value={inputs} onChange={setInputs} />
        </fieldset>
      )}
      {preview.data && preview.data.length > 0 && (
        <p className="text-[13px] text-muted">
          Next: {preview.data.slice(0, 3).map((at) => dateTime(at)).join(" · ")}
        </p>
      )}
      <div className="flex justify-end gap-2 pt-1">
        <Button type="button" onClick={onDone}>
          Leave it
        </Button>
        <Button type="submit" variant="primary" disabled={!ready} busy={create.isPending}>
          Create
        </Button>
      </div>
    </form>
  );
}
