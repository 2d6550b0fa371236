/** What the run was given and what it gave. */
import type { ReactNode } from "react";
import { JsonView } from "../../../components/JsonView";
import { Empty } from "../../../components/States";
import type { Run } from "../queries";

export function IoTab({ run }: { run: Run }) {
  return (
    <div className="grid min-h-0 flex-1 content-start gap-4 overflow-auto p-4 lg:grid-cols-2" tabIndex={0} role="region" aria-label="Input and output">
      <Part title="Input">
        <JsonView value={run.inputs} label="Input" />
      </Part>
      <Part title={run.failure ? "Error" : "Output"}>
        {run.failure ? (
          <JsonView value={run.failure} label="Error" />
        ) : run.outputs ? (
          <JsonView value={run.outputs} label="Output" />
        ) : (
          <Empty title="No output yet" hint="It appears here when the run is completed." />
        )}
      </Part>
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="min-w-0">
      <h2 className="mb-1.5 text-xs font-medium text-muted">{title}</h2>
      {children}
    </section>
  );
}
