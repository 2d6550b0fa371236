/** A typed form from a JSON Schema. A value that has no input of its own is written as JSON. */
import { Plus, Trash2 } from "lucide-react";
import { useRef } from "react";
import { Button } from "./Button";
import { Field } from "./Field";
import { Checkbox } from "./Input";
import { initial, properties, requiredOf, type Schema, shape } from "./schema";
import { SchemaInput } from "./SchemaInput";

export { initial as initialValue, missing as missingFields } from "./schema";

export interface SchemaFormProps {
  schema: Schema;
  value: unknown;
  onChange: (value: unknown) => void;
  /** What is wrong, by the path of the field: `/amount`, `/items/0/name`. */
  errors?: Record<string, string>;
  disabled?: boolean;
}

export function SchemaForm({ schema, value, onChange, errors = {}, disabled }: SchemaFormProps) {
  const { kind } = shape(schema, schema);
  if (kind === "object") {
    return (
      <Fields schema={schema} root={schema} value={value} path="" {...{ onChange, errors, disabled }} />
    );
  }
  return (
    <Control
      schema={schema}
      root={schema}
      name={String(schema["title"] ?? "value")}
      path=""
      required
      {...{ value, onChange, errors, disabled }}
    />
  );
}

interface Inner {
  schema: Schema;
  root: Schema;
  value: unknown;
  path: string;
  onChange: (value: unknown) => void;
  errors: Record<string, string>;
  disabled?: boolean;
}

function Fields({ schema: given, root, value, path, onChange, errors, disabled }: Inner) {
  const { schema } = shape(given, root);
  const needed = requiredOf(schema);
  const fields = (typeof value === "object" && value !== null ? value : {}) as Record<
    string,
    unknown
  >;
  // several fields may change before the form is drawn again
  const latest = useRef(fields);
  latest.current = fields;
  const change = (name: string, next: unknown) => {
    const after = { ...latest.current, [name]: next };
    if (next === undefined) delete after[name];
    latest.current = after;
    onChange(after);
  };
  return (
    <div className="flex flex-col gap-3.5">
      {properties(schema).map(([name, property]) => (
        <Control
          key={name}
          name={name}
          schema={property}
          root={root}
          path={`${path}/${name}`}
          required={needed.has(name)}
          value={fields[name]}
          onChange={(next) => change(name, next)}
          errors={errors}
          disabled={disabled}
        />
      ))}
    </div>
  );
}

interface ControlProps extends Inner {
  name: string;
  required: boolean;
}

function Control(props: ControlProps) {
  const { name, schema: given, root, path, required, value, onChange, errors, disabled } = props;
  const { kind, nullable, schema } = shape(given, root);
  const label = <span className="font-mono text-[13px]">{name}</span>;
  const hint = text(schema["description"]) ?? text(given["description"]);
  const error = errors[path];
  if (nullable && value === null) {
    return (
      <Unset {...{ label, hint, error, disabled }} onSet={() => onChange(start(given, root))} />
    );
  }
  // where leaving it out means null already, an empty input says it
  const says = required || (given["default"] ?? null) !== null;
  const clear = nullable && says ? () => onChange(null) : undefined;
  if (kind === "boolean") {
    return (
      <div className="flex flex-col gap-1">
        <span className="flex items-center gap-3">
          <Checkbox
            checked={value === true}
            onChange={(next) => onChange(next)}
            label={label}
            disabled={disabled}
          />
          {clear && <NoValue onClick={clear} name={name} />}
        </span>
        {hint && <span className="text-xs text-muted">{hint}</span>}
        {error && (
          <span role="alert" className="text-xs text-failed">
            {error}
          </span>
        )}
      </div>
    );
  }
  if (kind === "object" || kind === "array") {
    return <Nested {...props} kind={kind} label={label} hint={hint} clear={clear} />;
  }
  return (
    <Field label={label} hint={hint} error={error} required={required}>
      <span className="flex items-center gap-1">
        <SchemaInput
          kind={kind}
          schema={schema}
          value={value}
          onChange={onChange}
          optional={!required}
          disabled={disabled}
        />
        {clear && <NoValue onClick={clear} name={name} />}
      </span>
    </Field>
  );
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}

/** A first value that is not null, for a field that had none. */
function start(schema: Schema, root: Schema): unknown {
  const bare = shape(schema, root).schema;
  return initial({ ...bare, default: undefined }, root) ?? "";
}

function NoValue({ onClick, name }: { onClick: () => void; name: string }) {
  return (
    <Button variant="ghost" size="sm" onClick={onClick} aria-label={`No value for ${name}`}>
      null
    </Button>
  );
}

function Unset(props: {
  label: React.ReactNode;
  hint?: string;
  error?: string;
  disabled?: boolean;
  onSet: () => void;
}) {
  return (
    <div className="flex flex-col gap-1">
      <span className="text-[13px] font-medium">{props.label}</span>
      <span className="flex items-center gap-2">
        <span className="text-[13px] text-muted">no value (null)</span>
        <Button size="sm" variant="ghost" disabled={props.disabled} onClick={props.onSet}>
          Set a value
        </Button>
      </span>
      {props.hint && <span className="text-xs text-muted">{props.hint}</span>}
      {props.error && (
        <span role="alert" className="text-xs text-failed">
          {props.error}
        </span>
      )}
    </div>
  );
}

function Nested({
  kind,
  label,
  hint,
  clear,
  ...props
}: ControlProps & {
  kind: "object" | "array";
  label: React.ReactNode;
  hint?: string;
  clear?: () => void;
}) {
  const { schema: given, root, value, path, onChange, errors, disabled, name, required } = props;
  const { schema } = shape(given, root);
  const absent = value === undefined;
  return (
    <fieldset className="min-w-0 rounded-md border border-line px-3 pb-3 pt-1.5" disabled={disabled}>
      <legend className="flex items-center gap-1 px-1 text-[13px] font-medium">
        {label}
        {required && <span className="text-failed">*</span>}
        {clear && <NoValue onClick={clear} name={name} />}
      </legend>
      {hint && <div className="mb-2 text-xs text-muted">{hint}</div>}
      {errors[path] && (
        <div role="alert" className="mb-2 text-xs text-failed">
          {errors[path]}
        </div>
      )}
      {absent && !required ? (
        <Button size="sm" icon={Plus} onClick={() => onChange(start(given, root))}>
          Give a value
        </Button>
      ) : kind === "object" ? (
        <Fields {...{ schema, root, value, path, onChange, errors, disabled }} />
      ) : (
        <Items {...{ schema, root, value, path, onChange, errors, disabled }} />
      )}
    </fieldset>
  );
}

function Items({ schema, root, value, path, onChange, errors, disabled }: Inner) {
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  const each = schema["items"] as Schema;
  return (
    <div className="flex flex-col gap-2">
      {items.map((item, index) => (
        <div key={index} className="flex items-start gap-2">
          <div className="min-w-0 flex-1">
            <Control
              name={`${index + 1}`}
              schema={each}
              root={root}
              path={`${path}/${index}`}
              required
              value={item}
              onChange={(next) =>
                onChange(items.map((old, at) => (at === index ? (next ?? null) : old)))
              }
              errors={errors}
              disabled={disabled}
            />
          </div>
          <Button
            variant="ghost"
            size="sm"
            icon={Trash2}
            aria-label={`Remove item ${index + 1}`}
            onClick={() => onChange(items.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      <span>
        <Button
          size="sm"
          icon={Plus}
          onClick={() => onChange([...items, initial(each, root) ?? emptyItem(each, root)])}
        >
          Add an item
        </Button>
      </span>
    </div>
  );
}

function emptyItem(schema: Schema, root: Schema): unknown {
  const { kind } = shape(schema, root);
  return kind === "number" || kind === "integer" ? 0 : kind === "json" ? null : "";
}
