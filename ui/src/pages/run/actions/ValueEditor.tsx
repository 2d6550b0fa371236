/** Values by name: a form made from their types, or the same as JSON. */
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { Field } from "../../../components/Field";
import { Textarea } from "../../../components/Input";
import { SchemaForm } from "../../../components/SchemaForm";
import { Toggle } from "../../../components/Toggle";

export type Values = Record<string, unknown>;
type Parameter = Schemas["Parameter"];

export function schemaOf(parameters: Parameter[]): Record<string, unknown> {
  return {
    type: "object",
    properties: Object.fromEntries(
      parameters.map((one) => [
        one.name,
        one.doc && !one.form.description ? { ...one.form, description: one.doc } : one.form,
      ]),
    ),
    required: parameters.filter((one) => one.required).map((one) => one.name),
  };
}

export function ValueEditor({
  schema,
  value,
  onChange,
}: {
  /** absent when the types are not known: then JSON alone */
  schema: Record<string, unknown> | undefined;
  value: Values;
  /** null while the JSON cannot be read */
  onChange: (value: Values | null) => void;
}) {
  const [json, setJson] = useState(schema === undefined);
  return (
    <div className="flex flex-col gap-3">
      {schema !== undefined && <Toggle checked={json} onChange={setJson} label="As JSON" />}
      {json || schema === undefined ? (
        <JsonField value={value} onChange={onChange} />
      ) : (
        <SchemaForm schema={schema} value={value} onChange={(next) => onChange(next as Values)} />
      )}
    </div>
  );
}

function JsonField({ value, onChange }: { value: Values; onChange: (value: Values | null) => void }) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const read = parse(text);
  return (
    <Field label="Values" error={read === null ? "This is not a JSON object." : undefined}>
      <Textarea
        rows={8}
        spellCheck={false}
        className="font-mono !text-xs"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          onChange(parse(event.target.value));
        }}
      />
    </Field>
  );
}

function parse(text: string): Values | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Values)
      : null;
  } catch {
    return null;
  }
}
