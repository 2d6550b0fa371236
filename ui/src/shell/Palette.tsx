/** Ctrl-K: pages, runs by id or text, workflows, and things to do. */
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import {
  CornerDownLeft,
  ListChecks,
  type LucideIcon,
  Moon,
  Play,
  Search,
  Workflow,
} from "lucide-react";
import { Dialog } from "radix-ui";
import { type ReactNode, useDeferredValue, useState } from "react";
import { api, token } from "../api/client";
import { session, signOut } from "../api/session";
import { stateInfo, stateText } from "../components/StateBadge";
import { shortId } from "../lib/format";
import { live, useLiveState } from "../lib/live";
import { useApi } from "../lib/query";
import { useTheme } from "../lib/theme";
import { Keys } from "./Help";
import { PLACES } from "./places";

export function Palette({
  open,
  onOpenChange,
  onHelp,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  onHelp: () => void;
}) {
  return (
    <Dialog.Root open={open} onOpenChange={onOpenChange}>
      <Dialog.Portal>
        <div aria-hidden className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed left-1/2 top-[12vh] z-50 w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-lg border border-line bg-raised shadow-2xl"
        >
          <Dialog.Title className="sr-only">Search and commands</Dialog.Title>
          <Content close={() => onOpenChange(false)} onHelp={onHelp} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Content({ close, onHelp }: { close: () => void; onHelp: () => void }) {
  const [text, setText] = useState("");
  const navigate = useNavigate();
  const go = (run: () => void) => () => {
    close();
    run();
  };
  return (
    <Command label="Search and commands" loop>
      <div className="flex items-center gap-2 border-b border-line px-3">
        <Search aria-hidden size={16} className="shrink-0 text-faint" />
        <Command.Input
          value={text}
          onValueChange={setText}
          placeholder="A page, a run, a workflow, something to do"
          className="h-11 w-full bg-transparent text-sm outline-none placeholder:text-faint"
        />
      </div>
      <Command.List className="max-h-[52vh] overflow-y-auto p-1.5">
        <Command.Empty className="px-3 py-6 text-center text-[13px] text-muted">
          Nothing is called that.
        </Command.Empty>
        <Group heading="Pages">
          {PLACES.map((place) => (
            <Item
              key={place.to}
              value={`page ${place.name}`}
              icon={place.icon}
              keys={`g ${place.key}`}
              onSelect={go(() => void navigate({ to: place.to }))}
            >
              {place.name}
            </Item>
          ))}
          <Item
            value="page Bulk actions"
            icon={ListChecks}
            onSelect={go(() => void navigate({ to: "/bulk" }))}
          >
            Bulk actions
          </Item>
        </Group>
        <Actions go={go} onHelp={onHelp} />
        <Workflows go={go} />
        <FoundRuns text={text} go={go} />
      </Command.List>
    </Command>
  );
}

type Go = (run: () => void) => () => void;

function FoundRuns({ text, go }: { text: string; go: Go }) {
  const navigate = useNavigate();
  const wanted = useDeferredValue(text.trim());
  const found = useApi(
    ["runs", "palette", wanted],
    (signal) =>
      api.GET("/api/v1/runs", { params: { query: { text: wanted, limit: 8 } }, signal }),
    { enabled: wanted.length >= 2, keep: true },
  );
  if (wanted.length < 2 || !found.data?.items.length) return null;
  return (
    <Group heading="Runs">
      {found.data.items.map((run) => {
        const { icon: Icon, word } = stateInfo(run.state);
        return (
          <Item
            key={run.id}
            value={`run ${run.id}`}
            keywords={[text, run.workflow]}
            onSelect={go(() => void navigate({ to: "/runs/$run", params: { run: run.id } }))}
          >
            <Icon aria-label={word} size={14} className={`shrink-0 ${stateText(run.state)}`} />
            <span className="truncate">{run.workflow}</span>
            <code className="shrink-0 font-mono text-xs text-muted">{shortId(run.id)}</code>
            {run.key && <span className="truncate text-xs text-muted">{run.key}</span>}
          </Item>
        );
      })}
    </Group>
  );
}

function Workflows({ go }: { go: Go }) {
  const navigate = useNavigate();
  const programs = useApi(["programs"], (signal) => api.GET("/api/v1/programs", { signal }));
  if (!programs.data?.length) return null;
  return (
    <Group heading="Workflows">
      {programs.data.flatMap((program) =>
        program.workflows.map((workflow) => (
          <Item
            key={`${program.name} ${workflow.name}`}
            value={`workflow ${program.name} ${workflow.name}`}
            icon={Workflow}
            onSelect={go(
              () =>
                void navigate({
                  to: "/flows/$program/$workflow",
                  params: { program: program.name, workflow: workflow.name },
                }),
            )}
          >
            {workflow.name}
            {program.name !== "default" && (
              <span className="text-xs text-muted">{program.name}</span>
            )}
          </Item>
        )),
      )}
    </Group>
  );
}

function Actions({ go, onHelp }: { go: Go; onHelp: () => void }) {
  const navigate = useNavigate();
  const [theme, setTheme] = useTheme();
  const paused = useLiveState() === "paused";
  const dark = document.documentElement.dataset.theme === "dark";
  return (
    <Group heading="Do">
      <Item
        value="do new run start submit"
        icon={Play}
        onSelect={go(() => void navigate({ to: "/runs", search: { new: true } }))}
      >
        Start a run
      </Item>
      <Item
        value="do failed runs"
        icon={CornerDownLeft}
        onSelect={go(() => void navigate({ to: "/runs", search: { state: "failed" } }))}
      >
        Show failed runs
      </Item>
      <Item
        value="do theme dark light"
        icon={Moon}
        onSelect={go(() => setTheme(dark ? "light" : "dark"))}
      >
        {dark ? "Light colours" : "Dark colours"}
      </Item>
      {theme !== "system" && (
        <Item
          value="do theme system colours"
          icon={Moon}
          onSelect={go(() => setTheme("system"))}
        >
          Colours of the system
        </Item>
      )}
      <Item
        value="do pause resume live updates"
        icon={CornerDownLeft}
        onSelect={go(() => (paused ? live.resume() : live.pause()))}
      >
        {paused ? "Follow changes again" : "Stop following changes"}
      </Item>
      <Item value="do keyboard shortcuts help" icon={CornerDownLeft} keys="?" onSelect={go(onHelp)}>
        Keyboard shortcuts
      </Item>
      {token.get() && (
        <Item
          value="do sign out forget token"
          icon={CornerDownLeft}
          onSelect={go(() => {
            token.set(null);
            location.reload();
          })}
        >
          Forget the token
        </Item>
      )}
      {!token.get() && session.csrf() && (
        <Item
          value="do sign out"
          icon={CornerDownLeft}
          onSelect={go(() => void signOut().then(() => location.reload()))}
        >
          Sign out
        </Item>
      )}
    </Group>
  );
}

function Group({ heading, children }: { heading: string; children: ReactNode }) {
  return (
    <Command.Group
      heading={heading}
      className="[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-muted"
    >
      {children}
    </Command.Group>
  );
}

function Item({
  value,
  keywords,
  icon: Icon,
  keys,
  onSelect,
  children,
}: {
  value: string;
  keywords?: string[];
  icon?: LucideIcon;
  keys?: string;
  onSelect: () => void;
  children: ReactNode;
}) {
  return (
    <Command.Item
      value={value}
      keywords={keywords}
      onSelect={onSelect}
      className="flex h-9 cursor-default items-center gap-2.5 rounded-md px-2 text-[13px] data-[selected=true]:bg-accent-soft"
    >
      {Icon && <Icon aria-hidden size={15} className="shrink-0 text-muted" />}
      <span className="flex min-w-0 flex-1 items-center gap-2">{children}</span>
      {keys && (
        <span className="flex gap-1">
          <Keys keys={keys} />
        </span>
      )}
    </Command.Item>
  );
}
