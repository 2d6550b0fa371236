/** What a person is asked: what they see, a typed form, and accept or reject. */
import { Check, X } from "lucide-react";
import { useState } from "react";
import { type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { Textarea } from "../../components/Input";
import { JsonView } from "../../components/JsonView";
import { initialValue, missingFields, SchemaForm } from "../../components/SchemaForm";
import { Sentence } from "../../components/Sentence";
import { Elapsed, Time } from "../../lib/time";

export type Item = Schemas["InboxView"];
export type AnswerForm = Schemas["AnswerForm"];

export function AnswerPanel({
  item,
  busy,
  onAnswer,
}: {
  item: Item;
  busy: boolean;
  onAnswer: (form: AnswerForm) => void;
}) {
  const schema = item.form as Record<string, unknown>;
  const [value, setValue] = useState<unknown>(() => initialValue(schema, schema));
  const [rejecting, setRejecting] = useState(false);
  const [reason, setReason] = useState("");
  const [errors, setErrors] = useState<Record<string, string>>({});
  const answer = () => {
    const lacking = missingFields(schema, value, schema);
    setErrors(Object.fromEntries(lacking.map((path) => [path, "This is needed."])));
    if (lacking.length === 0) onAnswer({ verb: "answer", values: value as never, reason: "" });
  };
  return (
    <div className="flex flex-col gap-4">
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-[13px]">
        <dt className="text-muted">Asked by</dt>
        <dd className="font-mono text-xs">{item.facet}</dd>
        <dt className="text-muted">Waits for</dt>
        <dd>
          <Elapsed from={item.since} />
        </dd>
        {item.deadline && (
          <>
            <dt className="text-muted">Until</dt>
            <dd>
              <Time at={item.deadline} />
              {item.at_deadline && <span className="text-muted">. <Sentence text={item.at_deadline} /></span>}
            </dd>
          </>
        )}
      </dl>
      {Object.keys(item.params).length > 0 && (
        <section aria-label="What it is about">
          <h3 className="mb-1 text-xs font-medium text-muted">What it is about</h3>
          <JsonView value={item.params} label="What it is about" />
        </section>
      )}
      <form
        aria-label={`Answer ${item.title}`}
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          answer();
        }}
      >
        <SchemaForm schema={schema} value={value} onChange={setValue} errors={errors} disabled={busy} />
        {rejecting ? (
          <div className="flex flex-col gap-2 rounded-md border border-line p-3">
            <Field label="Why it is rejected" required>
              <Textarea rows={2} value={reason} onChange={(event) => setReason(event.target.value)} />
            </Field>
            <div className="flex gap-2">
              <Button
                type="button"
                variant="danger"
                icon={X}
                busy={busy}
                disabled={reason.trim() === ""}
                onClick={() => onAnswer({ verb: "reject", values: {}, reason })}
              >
                Reject
              </Button>
              <Button type="button" variant="ghost" onClick={() => setRejecting(false)}>
                Back
              </Button>
            </div>
          </div>
        ) : (
          <div className="flex gap-2">
            <Button type="submit" variant="primary" icon={Check} busy={busy}>
              Answer
            </Button>
            <Button type="button" variant="danger" icon={X} onClick={() => setRejecting(true)}>
              Reject…
            </Button>
          </div>
        )}
      </form>
    </div>
  );
}
