/** One request, for whoever has a signed link. */
import { useParams } from "@tanstack/react-router";
import { CircleCheck } from "lucide-react";
import { useState } from "react";
import { api, type Schemas } from "../../api/client";
import { Page } from "../../components/Page";
import { QueryState } from "../../components/States";
import { useAct } from "../../lib/act";
import { useApi } from "../../lib/query";
import { AnswerPanel, type AnswerForm } from "./AnswerPanel";

export default function LinkPage() {
  const { token } = useParams({ strict: false }) as { token: string };
  const [done, setDone] = useState<Schemas["Answered"] | null>(null);
  const item = useApi(["link", token], (signal) =>
    api.GET("/api/v1/links/{token}", { params: { path: { token } }, signal }),
  );
  const answer = useAct<AnswerForm, Schemas["Answered"]>(
    (form) => api.POST("/api/v1/links/{token}", { params: { path: { token } }, body: form }),
    { topics: ["inbox"], onDone: setDone },
  );
  if (done) {
    return (
      <Page title="Thank you">
        <p className="flex items-center gap-2 text-[13px]">
          <CircleCheck aria-hidden size={16} className="text-done" />
          {done.sentence} You can close this page.
        </p>
      </Page>
    );
  }
  return (
    <Page title="You are asked for an answer">
      <QueryState query={item}>
        {(asked) => (
          <section
            aria-label={asked.title}
            className="flex max-w-2xl flex-col gap-4 rounded-lg border border-line bg-surface p-4"
          >
            <h2 className="text-base font-semibold">{asked.title}</h2>
            <AnswerPanel item={asked} busy={answer.isPending} onAnswer={(form) => answer.mutate(form)} />
          </section>
        )}
      </QueryState>
    </Page>
  );
}
