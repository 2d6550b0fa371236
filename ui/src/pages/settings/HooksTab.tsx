/** What other systems may start. */
import { Trash2, Webhook } from "lucide-react";
import { useState } from "react";
import { api, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { Field } from "../../components/Field";
import { Input } from "../../components/Input";
import { QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { useAct } from "../../lib/act";
import { useApi } from "../../lib/query";
import { Secret } from "./Secret";

export function HooksTab() {
  const hooks = useApi(["hooks"], (signal) => api.GET("/api/v1/hooks", { signal }));
  const [name, setName] = useState("");
  const [workflow, setWorkflow] = useState("");
  const [made, setMade] = useState<Schemas["NewHook"] | null>(null);
  const create = useAct((body: Schemas["HookForm"]) => api.POST("/api/v1/hooks", { body }), {
    topics: ["hooks"],
    onDone: (hook) => {
      setName("");
      setMade(hook);
    },
  });
  const [doomed, setDoomed] = useState<string | null>(null);
  const remove = useAct(
    (hook: string) => api.DELETE("/api/v1/hooks/{name}", { params: { path: { name: hook } } }),
    {
      topics: ["hooks"],
      done: (_, hook) => `Calls of ${hook} start nothing any more.`,
      onDone: () => setDoomed(null),
    },
  );
  return (
    <>
      <form
        className="flex flex-wrap items-end gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate({ name: name.trim(), workflow: workflow.trim(), program: "default" });
        }}
      >
        <Field label="Name">
          <Input value={name} placeholder="orders" onChange={(event) => setName(event.target.value)} />
        </Field>
        <Field label="Workflow">
          <Input value={workflow} placeholder="shop.Ordered" onChange={(event) => setWorkflow(event.target.value)} />
        </Field>
        <Button type="submit" icon={Webhook} disabled={!name.trim() || !workflow.trim()} busy={create.isPending}>
          Make a web hook
        </Button>
      </form>
      <QueryState query={hooks}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="text-[13px] text-muted">No other system starts runs here.</p>
          ) : (
            <Table
              caption="Web hooks"
              rows={rows}
              rowKey={(row) => row.name}
              columns={[
                { key: "name", head: "Name", cell: (row) => row.name },
                { key: "workflow", head: "Starts", cell: (row) => <code className="font-mono text-xs">{row.workflow}</code> },
                { key: "path", head: "Path", cell: (row) => <code className="font-mono text-xs">{row.path}</code> },
                {
                  key: "act",
                  head: "",
                  label: "Actions",
                  right: true,
                  cell: (row) => (
                    <Button size="sm" variant="ghost" icon={Trash2} aria-label={`Delete ${row.name}`} onClick={() => setDoomed(row.name)}>
                      Delete
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </QueryState>
      <Confirm
        open={doomed !== null}
        onOpenChange={(open) => !open && setDoomed(null)}
        title={`Delete ${doomed ?? ""}?`}
        verb="Delete"
        danger
        busy={remove.isPending}
        onConfirm={() => doomed && remove.mutate(doomed)}
      >
        Calls of it start nothing any more. Runs that it has started go on.
      </Confirm>
      <Secret title={`The secret of ${made?.name ?? ""}`} secret={made?.secret} onClose={() => setMade(null)} />
    </>
  );
}
