/** The form of a new run: from the parameters of a workflow to a schema, and back to what is sent. */
import type { Schemas } from "../../api/client";
import type { Schema } from "../../components/schema";

type Parameter = Schemas["Parameter"];

/** One schema for all parameters. What they share by `$defs` is put together at its root. */
export function parametersSchema(parameters: Parameter[]): Schema {
  const defs: Record<string, unknown> = {};
  const properties: Record<string, Schema> = {};
  for (const parameter of parameters) {
    const { $defs, ...form } = parameter.form as Schema;
    Object.assign(defs, $defs ?? {});
    const more: Schema = {};
    if (parameter.doc) more["description"] = parameter.doc;
    if (!parameter.required && parameter.default !== undefined && parameter.default !== null) {
      more["default"] = parameter.default;
    }
    properties[parameter.name] = { ...form, ...more };
  }
  return {
    type: "object",
    properties,
    required: parameters.filter((parameter) => parameter.required).map(({ name }) => name),
    $defs: defs,
  };
}

/** `env=prod tenant=acme`, with spaces or commas between. Null when a part is no label. */
export function parseLabels(text: string): Record<string, string> | null {
  const labels: Record<string, string> = {};
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const at = part.indexOf("=");
    if (at < 1) return null;
    labels[part.slice(0, at)] = part.slice(at + 1);
  }
  return labels;
}
