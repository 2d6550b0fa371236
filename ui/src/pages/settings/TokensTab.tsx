/** Who may reach the server from elsewhere. */
import { KeyRound, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Input, Select } from "../../components/Input";
import { QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { useAct } from "../../lib/act";
import { useApi } from "../../lib/query";
import { Time } from "../../lib/time";
import { ROLES, type Role } from "./roles";
import { Secret } from "./Secret";

export function TokensTab() {
  const tokens = useApi(["tokens"], (signal) => api.GET("/api/v1/tokens", { signal }));
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<Schemas["NewToken"] | null>(null);
  const [doomed, setDoomed] = useState<Schemas["TokenView"] | null>(null);
  const revoke = useAct(
    (id: string) => api.DELETE("/api/v1/tokens/{token}", { params: { path: { token: id } } }),
    { topics: ["tokens"], done: () => "The token is worthless now.", onDone: () => setDoomed(null) },
  );
  return (
    <>
      <div>
        <Button variant="primary" icon={KeyRound} onClick={() => setMaking(true)}>
          New token
        </Button>
      </div>
      <QueryState query={tokens}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="text-[13px] text-muted">Nobody has a token. Programs and the command line need one to reach this server from elsewhere.</p>
          ) : (
            <Table
              caption="Tokens"
              rows={rows}
              rowKey={(row) => row.id}
              columns={[
                { key: "name", head: "Name", cell: (row) => row.name },
                { key: "role", head: "Role", cell: (row) => row.role },
                { key: "tenant", head: "Tenant", cell: (row) => (row.tenant === "*" ? "all" : row.tenant) },
                { key: "made", head: "Made", cell: (row) => <Time at={row.created_at} /> },
                { key: "used", head: "Last used", cell: (row) => (row.last_used_at ? <Time at={row.last_used_at} /> : "never") },
                { key: "ends", head: "Good until", cell: (row) => (row.expires_at ? <Time at={row.expires_at} /> : "for ever") },
                {
                  key: "act",
                  head: "",
                  label: "Actions",
                  right: true,
                  cell: (row) => (
                    <Button size="sm" variant="ghost" icon={Trash2} aria-label={`Revoke ${row.name}`} onClick={() => setDoomed(row)}>
                      Revoke
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
        title={`Revoke ${doomed?.name ?? ""}?`}
        verb="Revoke"
        danger
        busy={revoke.isPending}
        onConfirm={() => doomed && revoke.mutate(doomed.id)}
      >
        Whoever uses it is refused from now on. It cannot be made good again.
      </Confirm>
      <TokenDialog open={making} onOpenChange={setMaking} onMade={setMade} />
      <Secret
        title={`The token ${made?.name ?? ""}`}
        secret={made?.secret}
        onClose={() => setMade(null)}
      />
    </>
  );
}

function TokenDialog({
  open,
  onOpenChange,
  onMade,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  onMade: (token: Schemas["NewToken"]) => void;
}) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [tenant, setTenant] = useState("*");
  const create = useAct((body: Schemas["TokenForm"]) => api.POST("/api/v1/tokens", { body }), {
    topics: ["tokens"],
    onDone: (made) => {
      onOpenChange(false);
      setName("");
      onMade(made);
    },
  });
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="New token" size="sm">
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate({ name: name.trim(), role, tenant });
        }}
      >
        <Field label="Name" required hint="Who or what will use it.">
          <Input value={name} onChange={(event) => setName(event.target.value)} />
        </Field>
        <Field label="Role" hint={ROLES[role]}>
          <Select value={role} onChange={(event) => setRole(event.target.value as Role)}>
            {Object.keys(ROLES).map((one) => (
              <option key={one}>{one}</option>
            ))}
          </Select>
        </Field>
        <Field label="Tenant" hint="Whose runs it sees; * is all.">
          <Input value={tenant} onChange={(event) => setTenant(event.target.value)} />
        </Field>
        <div className="flex justify-end gap-2">
          <Button type="submit" variant="primary" disabled={name.trim() === ""} busy={create.isPending}>
            Make it
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
