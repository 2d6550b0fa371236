/** Starts a run: choose a workflow, fill in its typed form, see what may keep it from going on. */
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ChevronRight, Play, TriangleAlert } from "lucide-react";
import { useMemo, useState } from "react";
import { api, ApiError, type Schemas, unwrap } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Input, Select } from "../../components/Input";
import { initialValue, missingFields, SchemaForm } from "../../components/SchemaForm";
import { Empty, QueryState } from "../../components/States";
import { useApi } from "../../lib/query";
import { parametersSchema, parseLabels } from "./newRun";

type Deployment = Schemas["DeploymentLine"];
type WorkflowView = Schemas["WorkflowView"];
type Submitted = Schemas["Submitted"];

interface Choice {
  program: Deployment;
  workflow: WorkflowView;
}

export function NewRun({ workflow, onClose }: { workflow?: string; onClose: () => void }) {
  const programs = useApi(["programs"], (signal) => api.GET("/api/v1/programs", { signal }));
  return (
    <QueryState
      query={programs}
      label="Looking what can be run"
      empty={
        <Dialog open onOpenChange={(open) => !open && onClose()} title="New run">
          <Empty
            title="No program is deployed"
            hint="A run needs a workflow. Deploying sources makes theirs available:"
            command="afl deploy flows"
          />
        </Dialog>
      }
    >
      {(data) => <Form programs={data} wanted={workflow} onClose={onClose} />}
    </QueryState>
  );
}

function Form({
  programs,
  wanted,
  onClose,
}: {
  programs: Deployment[];
  wanted?: string;
  onClose: () => void;
}) {
  const choices = useMemo<Choice[]>(
    () =>
      programs.flatMap((program) => program.workflows.map((workflow) => ({ program, workflow }))),
    [programs],
  );
  const first = choices.findIndex(({ workflow }) => workflow.name === wanted);
  const [at, setAt] = useState(Math.max(0, first));
  const choice = choices[at];
  if (!choice) {
    return (
      <Dialog open onOpenChange={(open) => !open && onClose()} title="New run">
        <Empty title="The deployed programs have no workflow" hint="Only workflows can be started." />
      </Dialog>
    );
  }
  return (
    <Filled
      key={`${choice.program.name} ${choice.workflow.name}`}
      choice={choice}
      choices={choices}
      at={at}
      onChoose={setAt}
      onClose={onClose}
    />
  );
}

function Filled({
  choice,
  choices,
  at,
  onChoose,
  onClose,
}: {
  choice: Choice;
  choices: Choice[];
  at: number;
  onChoose: (at: number) => void;
  onClose: () => void;
}) {
  const { workflow, program } = choice;
  const schema = useMemo(() => parametersSchema(workflow.parameters), [workflow]);
  const [inputs, setInputs] = useState<unknown>(() => initialValue(schema, schema));
  const [options, setOptions] = useState<Options>({ labels: "", key: "", conflict: "attach", deadline: "" });
  const [shown, setShown] = useState<Record<string, string>>({});
  const [submitted, setSubmitted] = useState<Submitted>();
  const navigate = useNavigate();
  const open = (run: string) => void navigate({ to: "/runs/$run", params: { run } });
  const labels = parseLabels(options.labels);

  const submit = useMutation({
    mutationFn: () =>
      unwrap(
        api.POST("/api/v1/runs", {
          body: {
            workflow: workflow.name,
            program: program.name,
            inputs: inputs as Record<string, never>,
            labels: labels ?? {},
            key: options.key.trim() || null,
            conflict: options.conflict,
            deadline: options.deadline.trim() || null,
          },
        }),
      ),
    onSuccess: (answer) =>
      answer.warnings.length > 0 ? setSubmitted(answer) : open(answer.run.id),
  });
  const send = () => {
    const absent = missingFields(schema, inputs, schema);
    setShown(Object.fromEntries(absent.map((path) => [path, "A value is needed."])));
    if (absent.length === 0 && labels !== null) submit.mutate();
  };

  if (submitted) return <Warned answer={submitted} onOpen={open} onClose={onClose} />;
  return (
    <Dialog
      open
      onOpenChange={(isOpen) => !isOpen && onClose()}
      size="lg"
      title="New run"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form="new-run" variant="primary" icon={Play} busy={submit.isPending}>
            Start
          </Button>
        </>
      }
    >
      <form
        id="new-run"
        noValidate
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <Field label="Workflow" hint={workflow.doc ?? undefined}>
          <Select value={at} onChange={(event) => onChoose(Number(event.target.value))}>
            {choices.map((each, index) => (
              <option key={index} value={index}>
                {each.workflow.name}
                {each.program.name === "default" ? "" : ` (${each.program.name})`}
              </option>
            ))}
          </Select>
        </Field>
        {workflow.parameters.length === 0 ? (
          <p className="text-[13px] text-muted">It takes no inputs.</p>
        ) : (
          <SchemaForm schema={schema} value={inputs} onChange={setInputs} errors={shown} />
        )}
        <More options={options} onChange={setOptions} badLabels={labels === null} />
        {submit.error && <Refusal error={submit.error} />}
      </form>
    </Dialog>
  );
}

function Refusal({ error }: { error: Error }) {
  const hint = error instanceof ApiError ? error.problem?.hint : null;
  return (
    <p role="alert" className="rounded-md border border-failed px-3 py-2 text-[13px] text-failed">
      {error.message}
      {hint && <span className="block text-muted">{hint}</span>}
    </p>
  );
}

interface Options {
  labels: string;
  key: string;
  conflict: "attach" | "reject" | "replace";
  deadline: string;
}

function More({
  options,
  onChange,
  badLabels,
}: {
  options: Options;
  onChange: (options: Options) => void;
  badLabels: boolean;
}) {
  const set = (patch: Partial<Options>) => onChange({ ...options, ...patch });
  return (
    <details className="group rounded-md border border-line">
      <summary className="flex h-9 cursor-pointer list-none items-center gap-1.5 rounded-md px-3 text-[13px] font-medium">
        <ChevronRight aria-hidden size={14} className="group-open:rotate-90" />
        Labels, key and deadline
      </summary>
      <div className="grid gap-3 px-3 pb-3 pt-1 sm:grid-cols-2">
        <Field
          label="Labels"
          hint="To find it again: env=prod tenant=acme"
          error={badLabels ? "Write labels as name=value." : undefined}
        >
          <Input value={options.labels} onChange={(event) => set({ labels: event.target.value })} />
        </Field>
        <Field label="Deadline" hint="How long it may take, such as 2h">
          <Input
            value={options.deadline}
            onChange={(event) => set({ deadline: event.target.value })}
          />
        </Field>
        <Field label="Key" hint="One run has it: starting again finds that run.">
          <Input value={options.key} onChange={(event) => set({ key: event.target.value })} />
        </Field>
        <Field label="When a run has the key">
          <Select
            disabled={options.key.trim() === ""}
            value={options.conflict}
            onChange={(event) => set({ conflict: event.target.value as Options["conflict"] })}
          >
            <option value="attach">show that run</option>
            <option value="reject">refuse</option>
            <option value="replace">cancel it and start another</option>
          </Select>
        </Field>
      </div>
    </details>
  );
}

/** It was started, and something may keep it from going on. */
function Warned({
  answer,
  onOpen,
  onClose,
}: {
  answer: Submitted;
  onOpen: (run: string) => void;
  onClose: () => void;
}) {
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="The run has started"
      description="It may not get on:"
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button variant="primary" onClick={() => onOpen(answer.run.id)}>
            Open the run
          </Button>
        </>
      }
    >
      <ul className="flex flex-col gap-2">
        {answer.warnings.map((warning) => (
          <li key={warning} className="flex gap-2 text-[13px]">
            <TriangleAlert aria-hidden size={15} className="mt-0.5 shrink-0 text-waiting" />
            {warning}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
