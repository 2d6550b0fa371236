/** What waits for people. The first answer counts. */
import { Link } from "@tanstack/react-router";
import clsx from "clsx";
import { api, type Schemas } from "../../api/client";
import { CopyButton } from "../../components/CopyButton";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { Empty, QueryState } from "../../components/States";
import { useAct } from "../../lib/act";
import { useLive } from "../../lib/live";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { Elapsed } from "../../lib/time";
import { AnswerPanel, type AnswerForm, type Item } from "./AnswerPanel";

type Answered = Schemas["Answered"];

export default function InboxPage() {
  useLive(["inbox"]);
  const [search, setSearch] = useSearchState<{ task: string; group: string }>();
  const items = useApi(["inbox", search.group ?? ""], (signal) =>
    api.GET("/api/v1/inbox", {
      params: { query: { limit: 200, ...(search.group ? { group: search.group } : {}) } },
      signal,
    }),
  );
  const answer = useAct<{ item: Item; form: AnswerForm }, Answered>(
    ({ item, form }) =>
      api.POST("/api/v1/inbox/{task}", { params: { path: { task: item.task } }, body: form }),
    {
      topics: ["inbox", "home"],
      done: (answered) => answered.sentence,
      onDone: () => setSearch({ task: undefined }),
    },
  );
  return (
    <Page title="Inbox" live subtitle="What runs and agents ask people for. The first answer counts.">
      <QueryState
        query={items}
        label="Inbox"
      >
        {(page) =>
          page.items.length === 0 ? (
            <Empty
              title="Nobody waits for you"
              hint="A facet with the policy Human asks a person, and the run waits for the answer."
              docs="docs/how-to/ask-a-person.md"
            />
          ) : (
            <div className="grid items-start gap-4 lg:grid-cols-[minmax(280px,380px)_1fr]">
              <ItemList
                items={page.items}
                chosen={chosenOf(page.items, search.task)?.task}
                onChoose={(task) => setSearch({ task })}
              />
              <Chosen
                item={chosenOf(page.items, search.task)}
                busy={answer.isPending}
                onAnswer={(item, form) => answer.mutate({ item, form })}
              />
            </div>
          )
        }
      </QueryState>
    </Page>
  );
}

function chosenOf(items: Item[], task: string | undefined): Item | undefined {
  return items.find((item) => item.task === task) ?? items[0];
}

function ItemList({
  items,
  chosen,
  onChoose,
}: {
  items: Item[];
  chosen: string | undefined;
  onChoose: (task: string) => void;
}) {
  return (
    <ul className="overflow-hidden rounded-lg border border-line bg-surface" aria-label="Requests">
      {items.map((item) => (
        <li key={item.task} className="border-b border-line last:border-0">
          <button
            type="button"
            aria-current={item.task === chosen}
            onClick={() => onChoose(item.task)}
            className={clsx(
              "flex w-full flex-col gap-0.5 px-3 py-2 text-left hover:bg-sunken",
              item.task === chosen && "bg-accent-soft",
            )}
          >
            <span className="flex items-center justify-between gap-2">
              <span className="truncate font-medium">{item.title}</span>
              <Elapsed from={item.since} className="shrink-0 text-xs text-muted" />
            </span>
            <span className="flex items-center gap-2 text-xs text-muted">
              <StateBadge state="needs_you" size="sm" label={item.group || "anybody"} />
              <span className="truncate font-mono">{item.step ?? item.facet}</span>
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Chosen({
  item,
  busy,
  onAnswer,
}: {
  item: Item | undefined;
  busy: boolean;
  onAnswer: (item: Item, form: AnswerForm) => void;
}) {
  if (!item) return null;
  return (
    <section
      aria-label={item.title}
      className="flex flex-col gap-4 rounded-lg border border-line bg-surface p-4"
    >
      <header className="flex flex-wrap items-start justify-between gap-2">
        <h2 className="text-base font-semibold">{item.title}</h2>
        <span className="flex items-center gap-3 text-[13px]">
          <Link
            to="/runs/$run"
            params={{ run: item.run }}
            search={item.step ? { step: item.step.split("#")[0] } : {}}
            className="text-accent hover:underline"
          >
            Open the run
          </Link>
          {item.link && (
            <CopyButton
              text={() => `${window.location.origin}${item.link}`}
              label="Copy a link that answers this without an account"
            >
              Copy link
            </CopyButton>
          )}
        </span>
      </header>
      <AnswerPanel key={item.task} item={item} busy={busy} onAnswer={(form) => onAnswer(item, form)} />
    </section>
  );
}
