/** The definition graph of a workflow that has no run yet: the drawing of the run page, without counts. */
import { lazy, Suspense, useState } from "react";
import { type Schemas } from "../api/client";
import { Loading } from "./States";

const Drawn = lazy(() => import("../pages/run/graph/GraphPane").then((part) => ({ default: part.Drawn })));

export function FlowGraph({
  graph,
  onStatement,
}: {
  graph: Schemas["GraphView"];
  onStatement?: (id: string | undefined) => void;
}) {
  const [inside, setInside] = useState<string | undefined>();
  const [table, setTable] = useState(false);
  const [statement, setStatement] = useState<string | undefined>();
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Suspense fallback={<Loading label="Reading the graph" />}>
        <Drawn
          graph={graph}
          statement={statement}
          inside={inside}
          table={table}
          bare
          onStatement={(id) => {
            setStatement(id);
            onStatement?.(id);
          }}
          onInside={setInside}
          onTable={setTable}
        />
      </Suspense>
    </div>
  );
}
