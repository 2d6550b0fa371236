/** All addresses of the dashboard. Pages are loaded when they are opened. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from "@tanstack/react-router";
import { Broken, NotFound } from "./shell/Broken";
import { Shell } from "./shell/Shell";

const root = createRootRoute({ component: Shell });

type Search = Record<string, string | string[] | number | boolean | undefined>;

function page<const P extends string>(path: P, load: () => Promise<{ default: React.ComponentType }>) {
  return createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(load as never, "default" as never),
    validateSearch: (search: Search): Search => search,
  });
}

export const routes = [
  page("/", () => import("./pages/home/HomePage")),
  page("/runs", () => import("./pages/runs/RunsPage")),
  page("/runs/$run", () => import("./pages/run/RunPage")),
  page("/bulk", () => import("./pages/runs/BulkListPage")),
  page("/bulk/$job", () => import("./pages/runs/BulkPage")),
  page("/flows", () => import("./pages/flows/FlowsPage")),
  page("/flows/$program/$workflow", () => import("./pages/flows/FlowPage")),
  page("/playground", () => import("./pages/playground/PlaygroundPage")),
  page("/agents", () => import("./pages/agents/AgentsPage")),
  page("/turns/$turn", () => import("./pages/agents/TurnPage")),
  page("/inbox", () => import("./pages/inbox/InboxPage")),
  page("/answer/$token", () => import("./pages/inbox/LinkPage")),
  page("/queues", () => import("./pages/queues/QueuesPage")),
  page("/workers", () => import("./pages/workers/WorkersPage")),
  page("/schedules", () => import("./pages/schedules/SchedulesPage")),
  page("/logs", () => import("./pages/logs/LogsPage")),
  page("/cost", () => import("./pages/cost/CostPage")),
  page("/settings", () => import("./pages/settings/SettingsPage")),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  defaultPreload: "intent",
  defaultErrorComponent: Broken,
  defaultNotFoundComponent: NotFound,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
