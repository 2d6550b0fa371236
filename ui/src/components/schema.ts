/** What a form has to know of a JSON Schema, and what its inputs mean. Nothing here knows of React. */

export type Schema = Record<string, unknown>;

export type Kind =
  | "string"
  | "text"
  | "number"
  | "integer"
  | "boolean"
  | "enum"
  | "date-time"
  | "date"
  | "array"
  | "object"
  | "json";

export interface Shape {
  kind: Kind;
  nullable: boolean;
  /** The schema without its null branch and with its reference followed. */
  schema: Schema;
}

/** `#/$defs/Name` in the schema that the whole form was given. */
export function follow(schema: Schema, root: Schema): Schema {
  let found = schema;
  for (let hops = 0; hops < 10; hops += 1) {
    const ref = found["$ref"];
    if (typeof ref !== "string" || !ref.startsWith("#/")) return found;
    let at: unknown = root;
    for (const part of ref.slice(2).split("/")) {
      at = (at as Schema | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    }
    if (typeof at !== "object" || at === null) return found;
    const { $ref: _, ...own } = found;
    found = { ...(at as Schema), ...own };
  }
  return found;
}

/** Which input a schema asks for. What has no input of its own is written as JSON. */
export function shape(given: Schema, root: Schema): Shape {
  const schema = follow(given, root);
  const branches = (schema["anyOf"] ?? schema["oneOf"]) as Schema[] | undefined;
  if (Array.isArray(branches)) {
    const { anyOf: _any, oneOf: _one, ...own } = schema;
    const real = branches.filter((branch) => follow(branch, root)["type"] !== "null");
    const nullable = real.length < branches.length;
    const [only] = real;
    if (real.length === 1 && only) {
      const inner = shape({ ...own, ...follow(only, root) }, root);
      return { ...inner, nullable: nullable || inner.nullable };
    }
    return { kind: "json", nullable, schema };
  }
  const type = schema["type"];
  if (Array.isArray(type)) {
    const real = type.filter((name) => name !== "null");
    const inner = real.length === 1 ? shape({ ...schema, type: real[0] }, root) : null;
    return {
      kind: inner?.kind ?? "json",
      nullable: real.length < type.length,
      schema: inner?.schema ?? schema,
    };
  }
  return { kind: kindOf(schema), nullable: false, schema };
}

function kindOf(schema: Schema): Kind {
  if (Array.isArray(schema["enum"])) return "enum";
  switch (schema["type"]) {
    case "string":
      if (schema["format"] === "date-time") return "date-time";
      if (schema["format"] === "date") return "date";
      return schema["format"] === "multiline" ? "text" : "string";
    case "integer":
    case "number":
    case "boolean":
      return schema["type"];
    case "array":
      return schema["items"] && typeof schema["items"] === "object" ? "array" : "json";
    case "object":
      return schema["properties"] ? "object" : "json";
    default:
      return "json";
  }
}

/** What an input starts with: the default, or the emptiest value of its type. */
export function initial(given: Schema, root: Schema): unknown {
  const { kind, nullable, schema } = shape(given, root);
  if (schema["default"] !== undefined) return schema["default"];
  if (given["default"] !== undefined) return given["default"];
  if (nullable) return null;
  switch (kind) {
    case "boolean":
      return false;
    case "array":
      return [];
    case "enum":
      return (schema["enum"] as unknown[])[0];
    case "object":
      return initialObject(schema, root);
    default:
      return undefined;
  }
}

function initialObject(schema: Schema, root: Schema): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  const needed = requiredOf(schema);
  for (const [name, property] of properties(schema)) {
    const start = initial(property, root);
    if (start !== undefined && (start !== null || needed.has(name))) value[name] = start;
  }
  return value;
}

export function properties(schema: Schema): [string, Schema][] {
  return Object.entries((schema["properties"] ?? {}) as Record<string, Schema>);
}

export function requiredOf(schema: Schema): Set<string> {
  return new Set(Array.isArray(schema["required"]) ? (schema["required"] as string[]) : []);
}

/** A typed number, or what is wrong with the text. Empty text is no value. */
export function parseNumber(text: string, integer: boolean): { value?: number; error?: string } {
  if (text.trim() === "") return {};
  const value = Number(text);
  if (!Number.isFinite(value)) return { error: "This is not a number." };
  if (integer && !Number.isInteger(value)) return { error: "This must be a whole number." };
  if (integer && !Number.isSafeInteger(value)) return { error: "This number is too large." };
  return { value };
}

export function parseJson(text: string): { value?: unknown; error?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}` };
  }
}

/** A local date and time of an input, as the API takes it. */
export function fromLocal(text: string): string | undefined {
  const at = new Date(text);
  return text === "" || Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

/** The other way: what the browser's input for date and time shows. */
export function toLocal(value: unknown): string {
  if (typeof value !== "string") return "";
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The needed fields that have no value, by their path. */
export function missing(given: Schema, value: unknown, root: Schema, path = ""): string[] {
  const { kind, schema } = shape(given, root);
  if (kind === "array" && Array.isArray(value)) {
    return value.flatMap((item, index) =>
      missing(schema["items"] as Schema, item, root, `${path}/${index}`),
    );
  }
  if (kind !== "object" || typeof value !== "object" || value === null) return [];
  const fields = value as Record<string, unknown>;
  const needed = requiredOf(schema);
  return properties(schema).flatMap(([name, property]) => {
    const inner = fields[name];
    if (inner === undefined) return needed.has(name) ? [`${path}/${name}`] : [];
    return missing(property, inner, root, `${path}/${name}`);
  });
}
