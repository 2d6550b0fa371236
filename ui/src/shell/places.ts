/** The pages that can be gone to directly: the list on the left, the palette and `g` keys. */
import {
  Bot,
  CalendarClock,
  FlaskConical,
  House,
  Inbox,
  Layers,
  ListTree,
  type LucideIcon,
  ScrollText,
  Server,
  Settings,
  Wallet,
  Workflow,
} from "lucide-react";

export interface Place {
  to:
    | "/"
    | "/runs"
    | "/flows"
    | "/playground"
    | "/agents"
    | "/inbox"
    | "/queues"
    | "/workers"
    | "/schedules"
    | "/logs"
    | "/cost"
    | "/settings";
  name: string;
  icon: LucideIcon;
  /** The key after `g`. */
  key: string;
}

export const PLACES: Place[] = [
  { to: "/", name: "Home", icon: House, key: "h" },
  { to: "/runs", name: "Runs", icon: ListTree, key: "r" },
  { to: "/flows", name: "Flows", icon: Workflow, key: "f" },
  { to: "/playground", name: "Playground", icon: FlaskConical, key: "p" },
  { to: "/agents", name: "Agents", icon: Bot, key: "a" },
  { to: "/inbox", name: "Inbox", icon: Inbox, key: "i" },
  { to: "/queues", name: "Queues", icon: Layers, key: "q" },
  { to: "/workers", name: "Workers", icon: Server, key: "w" },
  { to: "/schedules", name: "Schedules", icon: CalendarClock, key: "s" },
  { to: "/logs", name: "Logs", icon: ScrollText, key: "l" },
  { to: "/cost", name: "Cost", icon: Wallet, key: "c" },
  { to: "/settings", name: "Settings", icon: Settings, key: "t" },
];

/** The place that an address belongs to: a run is one of the runs. */
export function placeOf(path: string): Place | undefined {
  if (path.startsWith("/turns/")) return PLACES.find((place) => place.to === "/agents");
  if (path === "/bulk" || path.startsWith("/bulk/")) return PLACES.find((place) => place.to === "/runs");
  if (path === "/") return PLACES[0];
  return PLACES.find(
    (place) => place.to !== "/" && (path === place.to || path.startsWith(`${place.to}/`)),
  );
}
