/** What the form of an action starts from, and the types of its values. */
import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "../../../api/client";
import { initialValue } from "../../../components/SchemaForm";
import { type Program, type Run, topic, useProgram, useStep } from "../queries";
import { schemaOf, type Values } from "./ValueEditor";
import { type Ask, VERBS } from "./verbs";

export interface FormValues {
  /** whether there is a form at all */
  shown: boolean;
  schema: Record<string, unknown> | undefined;
  /** undefined while it is read */
  initial: Values | undefined;
}

export function useFormValues(run: Run, ask: Ask): FormValues {
  const kind = VERBS[ask.verb].form;
  const shown = kind === "arguments" || kind === "result";
  const program = useProgram(shown ? run.program : undefined);
  const input = useStepInput(run.id, shown && kind === "arguments" ? ask.step : undefined);
  const facet = useFacetName(run.id, shown ? ask.step : undefined);
  const reading = program.isPending || (ask.step !== undefined && facet === undefined);
  if (!shown || reading) return { shown, schema: undefined, initial: undefined };
  const schema = schemaFor(program.data, run, ask, facet);
  if (kind === "result") {
    const start = schema === undefined ? {} : initialValue(schema, schema);
    return { shown, schema, initial: start as Values };
  }
  const initial = ask.step === undefined ? run.inputs : input;
  return { shown, schema, initial: initial as Values | undefined };
}

function schemaFor(program: Program | undefined, run: Run, ask: Ask, facet: string | undefined) {
  if (ask.step === undefined) {
    const workflow = program?.workflows.find((one) => one.name === run.workflow);
    return workflow && schemaOf(workflow.parameters);
  }
  const known = program?.facets.find((one) => one.name === facet);
  if (known === undefined) return undefined;
  return schemaOf(VERBS[ask.verb].form === "result" ? known.returns : known.parameters);
}

function useFacetName(run: string, step: string | undefined): string | undefined {
  const { data } = useStep(run, step);
  return data?.row.path === step ? data?.row.facet : undefined;
}

/** The whole input: a panel may have only its beginning. */
function useStepInput(run: string, step: string | undefined): Values | undefined {
  const { data } = useQuery({
    queryKey: [topic(run), "input", step],
    enabled: step !== undefined,
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/runs/{run}/step/input", {
          params: { path: { run }, query: { path: step ?? "" } },
        }),
      ),
  });
  return data?.value as Values | undefined;
}
