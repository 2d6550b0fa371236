/** The server itself: health, tokens, web hooks, breakers, the audit trail, and how times are shown. */
import { api } from "../../api/client";
import { Page } from "../../components/Page";
import { Tabs } from "../../components/Tabs";
import { useApi } from "../../lib/query";
import { useSearchState } from "../../lib/search";
import { AuditTab } from "./AuditTab";
import { BreakersTab } from "./BreakersTab";
import { HealthTab } from "./HealthTab";
import { HooksTab } from "./HooksTab";
import { TokensTab } from "./TokensTab";
import { YouTab } from "./YouTab";

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
