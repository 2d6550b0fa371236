/** With `afl dev`: what the compiler says of the sources right now, on every page. */
import { ChevronDown, ChevronUp, CircleX, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { Button } from "../components/Button";
import { plural } from "../lib/format";
import { useLive } from "../lib/live";
import { useApi } from "../lib/query";

type Diagnostic = Schemas["Diagnostic"];

/** How many are shown before the rest is asked for. */
const FIRST = 3;

export function DevBar() {
  const query = useApi(["dev"], (signal) => api.GET("/api/v1/dev", { signal }));
  const dev = query.data?.enabled ? query.data : null;
  useLive(dev ? ["dev"] : []);
  const [all, setAll] = useState(false);
  const found = dev?.diagnostics ?? [];
  if (!dev || (found.length === 0 && !dev.error)) return null;
  const shown = all ? found : found.slice(0, FIRST);
  const more = found.length - shown.length;
  return (
    <section
      aria-label="Mistakes in the sources"
      tabIndex={0}
      className="max-h-64 shrink-0 overflow-y-auto border-b border-line bg-raised"
    >
      <div role="status">
        {dev.error && <Line severity="error" place="" code="" message={dev.error} />}
        {shown.map((one, index) => (
          <Line
            key={index}
            severity={one.severity}
            place={`${one.file}:${one.line}:${one.column}`}
            code={one.code}
            message={one.message}
            help={one.help}
          />
        ))}
      </div>
      {found.length > FIRST && (
        <div className="px-5 py-1">
          <Button
            variant="ghost"
            size="sm"
            icon={all ? ChevronUp : ChevronDown}
            onClick={() => setAll(!all)}
          >
            {all ? "Show fewer" : `Show ${plural(more, "more", "more")}`}
          </Button>
        </div>
      )}
    </section>
  );
}

function Line(props: {
  severity: Diagnostic["severity"];
  place: string;
  code: string;
  message: string;
  help?: string | null;
}) {
  const error = props.severity === "error";
  const Icon = error ? CircleX : TriangleAlert;
  return (
    <div className="flex items-baseline gap-2 border-t border-line px-6 py-1.5 text-[13px] first:border-0">
      <Icon
        aria-label={props.severity}
        size={14}
        className={error ? "shrink-0 self-center text-failed" : "shrink-0 self-center text-waiting"}
      />
      {props.place && <code className="shrink-0 font-mono text-xs font-medium">{props.place}</code>}
      {props.code && <code className="shrink-0 font-mono text-xs text-muted">{props.code}</code>}
      <span className="min-w-0 whitespace-pre-wrap break-words">
        {props.message}
        {props.help && <span className="text-muted"> · {props.help}</span>}
      </span>
    </div>
  );
}
