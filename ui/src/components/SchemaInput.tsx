/** Inputs for single values of a schema: text, numbers, choices, times, and JSON for the rest. */
import { useEffect, useId, useRef, useState } from "react";
import { Input, Select, Textarea } from "./Input";
import { fromLocal, type Kind, parseJson, parseNumber, type Schema, toLocal } from "./schema";

/** The input of one value that is neither a list nor an object. */
export function SchemaInput({
  kind,
  schema,
  value,
  onChange,
  optional,
  disabled,
}: {
  kind: Kind;
  schema: Schema;
  value: unknown;
  onChange: (value: unknown) => void;
  optional: boolean;
  disabled?: boolean;
}) {
  if (kind === "enum") return <Choice {...{ schema, value, onChange, optional, disabled }} />;
  if (kind === "number" || kind === "integer") {
    return (
      <Typed
        value={value}
        onChange={onChange}
        disabled={disabled}
        show={(known) => (known === undefined || known === null ? "" : String(known))}
        parse={(typed) => parseNumber(typed, kind === "integer")}
        inputMode={kind === "integer" ? "numeric" : "decimal"}
      />
    );
  }
  if (kind === "json") {
    return (
      <Typed
        value={value}
        onChange={onChange}
        disabled={disabled}
        multiline
        show={(known) => (known === undefined ? "" : JSON.stringify(known, null, 2))}
        parse={parseJson}
      />
    );
  }
  if (kind === "date-time") {
    return (
      <Input
        type="datetime-local"
        step={1}
        disabled={disabled}
        value={toLocal(value)}
        onChange={(event) => onChange(fromLocal(event.target.value))}
      />
    );
  }
  const known = typeof value === "string" ? value : "";
  const change = (typed: string) => onChange(typed === "" && optional ? undefined : typed);
  if (kind === "text" || known.includes("\n") || known.length > 120) {
    return (
      <Textarea value={known} disabled={disabled} onChange={(event) => change(event.target.value)} />
    );
  }
  return (
    <Input
      type={kind === "date" ? "date" : "text"}
      value={known}
      disabled={disabled}
      onChange={(event) => change(event.target.value)}
    />
  );
}

function Choice({
  schema,
  value,
  onChange,
  optional,
  disabled,
}: {
  schema: Schema;
  value: unknown;
  onChange: (value: unknown) => void;
  optional: boolean;
  disabled?: boolean;
}) {
  const choices = schema["enum"] as unknown[];
  const at = choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(value));
  return (
    <Select
      disabled={disabled}
      value={at < 0 ? "" : String(at)}
      onChange={(event) =>
        onChange(event.target.value === "" ? undefined : choices[Number(event.target.value)])
      }
    >
      {(optional || at < 0) && <option value="">–</option>}
      {choices.map((choice, index) => (
        <option key={index} value={index}>
          {typeof choice === "string" ? choice : JSON.stringify(choice)}
        </option>
      ))}
    </Select>
  );
}

/** Text that means another value: what is typed stays as typed, also while it means nothing yet. */
function Typed({
  value,
  onChange,
  show,
  parse,
  multiline,
  disabled,
  inputMode,
}: {
  value: unknown;
  onChange: (value: unknown) => void;
  show: (value: unknown) => string;
  parse: (text: string) => { value?: unknown; error?: string };
  multiline?: boolean;
  disabled?: boolean;
  inputMode?: "numeric" | "decimal";
}) {
  const [typed, setTyped] = useState(() => show(value));
  const [error, setError] = useState<string>();
  const said = useRef(value);
  const errorId = useId();
  const outside = JSON.stringify(value) !== JSON.stringify(said.current);
  useEffect(() => {
    if (!outside) return;
    said.current = value;
    setTyped(show(value));
    setError(undefined);
  }, [outside, value, show]);
  const change = (next: string) => {
    setTyped(next);
    const { value: meant, error: wrong } = parse(next);
    setError(wrong);
    said.current = meant;
    onChange(meant);
  };
  const names = error ? { "aria-invalid": true, "aria-errormessage": errorId } : {};
  return (
    <span className="flex min-w-0 flex-1 flex-col gap-1">
      {multiline ? (
        <Textarea
          value={typed}
          disabled={disabled}
          spellCheck={false}
          className="font-mono text-xs"
          onChange={(event) => change(event.target.value)}
          {...names}
        />
      ) : (
        <Input
          value={typed}
          disabled={disabled}
          inputMode={inputMode}
          className="tabular-nums"
          onChange={(event) => change(event.target.value)}
          {...names}
        />
      )}
      {error && (
        <span id={errorId} role="alert" className="text-xs text-failed">
          {error}
        </span>
      )}
    </span>
  );
}
