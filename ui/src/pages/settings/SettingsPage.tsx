/** The server itself: health, tokens, web hooks, breakers, the audit trail, and how times are shown. */
import { CircleCheck, CircleX, KeyRound, Trash2, Webhook } from "lucide-react";
import { useState } from "react";
import { api, token as ownToken, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { CopyButton } from "../../components/CopyButton";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Input, Select } from "../../components/Input";
import { Page } from "../../components/Page";
import { Sentence } from "../../components/Sentence";
import { StateBadge } from "../../components/StateBadge";
import { Command, QueryState } from "../../components/States";
import { Table } from "../../components/Table";
import { Tabs } from "../../components/Tabs";
import { useAct } from "../../lib/act";
import { count } from "../../lib/format";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { Time, useTimeStyle, type TimeStyle } from "../../lib/time";

type Role = Schemas["TokenForm"]["role"];
const ROLES: Record<Role, string> = {
  viewer: "sees runs and what they did",
  operator: "also retries, cancels and answers",
  developer: "also deploys and schedules",
  admin: "also makes tokens and reads the audit trail",
};

export default function SettingsPage() {
  const [search, setSearch] = useSearchState<{ tab: string }>();
  const me = useApi(["me"], (signal) => api.GET("/api/v1/me", { signal }));
  const admin = me.data?.role === "admin";
  const tabs = [
    { value: "health", label: "Health" },
    { value: "you", label: "You" },
    { value: "hooks", label: "Web hooks" },
    { value: "breakers", label: "Breakers" },
    ...(admin
      ? [
          { value: "tokens", label: "Tokens" },
          { value: "audit", label: "Audit trail" },
        ]
      : []),
  ];
  const tab = tabs.some((one) => one.value === search.tab) ? search.tab! : "health";
  return (
    <Page title="Settings">
      <Tabs tabs={tabs} value={tab} onChange={(value) => setSearch({ tab: value })} label="Settings">
        <div className="flex flex-col gap-4">
          {tab === "health" && <HealthTab />}
          {tab === "you" && <YouTab me={me.data} />}
          {tab === "hooks" && <HooksTab />}
          {tab === "breakers" && <BreakersTab />}
          {tab === "tokens" && <TokensTab />}
          {tab === "audit" && <AuditTab />}
        </div>
      </Tabs>
    </Page>
  );
}

function HealthTab() {
  const health = useApi(["health"], (signal) => api.GET("/api/v1/health", { signal }), { every: 10_000 });
  return (
    <QueryState query={health}>
      {(data) => (
        <>
          <dl className="flex flex-wrap gap-8 rounded-lg border border-line bg-surface px-4 py-3 text-[13px]">
            <Fact word="Version" value={data.version} />
            <Fact word="Database" value={data.database} />
            <Fact word="Server" value={data.mode === "dev" ? "afl dev" : "afl serve"} />
            <Fact word="Callers" value={data.auth ? "need a token" : "this machine alone, without tokens"} />
          </dl>
          <ul className="overflow-hidden rounded-lg border border-line bg-surface">
            {data.checks.map((check) => (
              <li key={check.name} className="flex items-start gap-3 border-b border-line px-4 py-2.5 last:border-0">
                {check.ok ? (
                  <CircleCheck aria-label="fine" size={16} className="mt-0.5 shrink-0 text-done" />
                ) : (
                  <CircleX aria-label="not fine" size={16} className="mt-0.5 shrink-0 text-failed" />
                )}
                <span className="w-32 shrink-0 text-[13px] font-medium">{check.name}</span>
                <span className="min-w-0 flex-1 text-[13px]">
                  <Sentence text={check.sentence} />
                  {check.hint && (
                    <span className="mt-1 block">
                      <Command text={/`([^`]+)`/.exec(check.hint)?.[1] ?? check.hint} />
                    </span>
                  )}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </QueryState>
  );
}

function Fact({ word, value }: { word: string; value: string }) {
  return (
    <div>
      <dt className="text-xs text-muted">{word}</dt>
      <dd className="font-medium">{value}</dd>
    </div>
  );
}

function YouTab({ me }: { me: Schemas["Me"] | undefined }) {
  const [style, setStyle] = useTimeStyle();
  return (
    <>
      {me && (
        <dl className="flex flex-wrap gap-8 rounded-lg border border-line bg-surface px-4 py-3 text-[13px]">
          <Fact word="You are" value={me.subject} />
          <Fact word="Role" value={`${me.role}: ${ROLES[me.role as Role] ?? ""}`} />
          <Fact word="Tenant" value={me.tenant === "*" ? "all of them" : me.tenant} />
        </dl>
      )}
      <Field label="Times are shown" className="max-w-xs">
        <Select value={style} onChange={(event) => setStyle(event.target.value as TimeStyle)}>
          <option value="relative">relative to now</option>
          <option value="local">in your time zone</option>
          <option value="utc">in UTC</option>
        </Select>
      </Field>
      {ownToken.get() && (
        <div>
          <Button
            onClick={() => {
              ownToken.set(null);
              window.location.reload();
            }}
          >
            Sign out
          </Button>
        </div>
      )}
    </>
  );
}

function TokensTab() {
  const tokens = useApi(["tokens"], (signal) => api.GET("/api/v1/tokens", { signal }));
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<Schemas["NewToken"] | null>(null);
  const revoke = useAct(
    (id: string) => api.DELETE("/api/v1/tokens/{token}", { params: { path: { token: id } } }),
    { topics: ["tokens"], done: () => "The token is worthless now." },
  );
  return (
    <>
      <div>
        <Button variant="primary" icon={KeyRound} onClick={() => setMaking(true)}>
          New token
        </Button>
      </div>
      <QueryState query={tokens}>
        {(rows) => (
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
                  <Button size="sm" variant="ghost" icon={Trash2} aria-label={`Revoke ${row.name}`} onClick={() => revoke.mutate(row.id)}>
                    Revoke
                  </Button>
                ),
              },
            ]}
          />
        )}
      </QueryState>
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

function Secret({ title, secret, onClose }: { title: string; secret: string | undefined; onClose: () => void }) {
  return (
    <Dialog
      open={secret !== undefined}
      onOpenChange={(open) => !open && onClose()}
      title={title}
      description="Copy it now: it is not shown again, and kept nowhere."
      size="md"
    >
      <p className="flex items-center gap-2 rounded-md border border-line bg-sunken px-3 py-2">
        <code className="min-w-0 flex-1 break-all font-mono text-xs">{secret}</code>
        <CopyButton text={secret ?? ""} label="Copy the secret" />
      </p>
    </Dialog>
  );
}

function HooksTab() {
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
  const remove = useAct(
    (hook: string) => api.DELETE("/api/v1/hooks/{name}", { params: { path: { name: hook } } }),
    { topics: ["hooks"], done: (_, hook) => `Calls of ${hook} start nothing any more.` },
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
                    <Button size="sm" variant="ghost" icon={Trash2} aria-label={`Delete ${row.name}`} onClick={() => remove.mutate(row.name)}>
                      Delete
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </QueryState>
      <Secret title={`The secret of ${made?.name ?? ""}`} secret={made?.secret} onClose={() => setMade(null)} />
    </>
  );
}

function BreakersTab() {
  const breakers = useApi(["breakers"], (signal) => api.GET("/api/v1/breakers", { signal }), { every: 5_000 });
  const reset = useAct(
    (name: string) => api.POST("/api/v1/breakers/{name}/reset", { params: { path: { name } } }),
    { topics: ["breakers"], done: (_, name) => `${name} is closed: calls go through again.` },
  );
  const states: Record<string, string> = { closed: "done", open: "failed", half_open: "waiting" };
  return (
    <QueryState query={breakers}>
      {(rows) =>
        rows.length === 0 ? (
          <p className="text-[13px] text-muted">No breaker that processes share was used yet. They share them through Redis.</p>
        ) : (
          <Table
            caption="Circuit breakers"
            rows={rows}
            rowKey={(row) => row.name}
            columns={[
              { key: "state", head: "State", cell: (row) => <StateBadge state={states[row.state] ?? "queued"} label={row.state.replace("_", " ")} /> },
              { key: "name", head: "Breaker", cell: (row) => <code className="font-mono text-xs">{row.name}</code> },
              { key: "failures", head: "Failures", right: true, cell: (row) => count(row.failures) },
              { key: "until", head: "Tried again", cell: (row) => (row.retry_at ? <Time at={row.retry_at} /> : "–") },
              {
                key: "act",
                head: "",
                label: "Actions",
                right: true,
                cell: (row) =>
                  row.state !== "closed" && (
                    <Button size="sm" variant="ghost" onClick={() => reset.mutate(row.name)}>
                      Close it
                    </Button>
                  ),
              },
            ]}
          />
        )
      }
    </QueryState>
  );
}

function AuditTab() {
  const audit = useApi(["audit"], (signal) => api.GET("/api/v1/audit", { params: { query: { limit: 200 } }, signal }));
  return (
    <Card title="What was done, and what was refused">
      <QueryState query={audit}>
        {(page) => (
          <Table
            className="rounded-none border-0"
            caption="Audit trail"
            rows={page.items}
            rowKey={(row) => String(row.id)}
            columns={[
              { key: "at", head: "When", cell: (row) => <Time at={row.at} /> },
              { key: "who", head: "Who", cell: (row) => `${row.subject} (${row.role})` },
              { key: "what", head: "What", cell: (row) => <code className="font-mono text-xs">{row.action}</code> },
              { key: "target", head: "On", cell: (row) => <span className="block max-w-sm truncate font-mono text-xs" title={row.target}>{row.target}</span> },
              {
                key: "status",
                head: "Answer",
                cell: (row) => (
                  <StateBadge
                    state={row.status === 0 ? "lost" : row.status < 400 ? "done" : "failed"}
                    label={row.status === 0 ? "not finished" : String(row.status)}
                  />
                ),
              },
            ]}
          />
        )}
      </QueryState>
    </Card>
  );
}
