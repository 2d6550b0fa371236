/** The list of pages on the left; narrow, it has only the icons. */
import { Link, useLocation } from "@tanstack/react-router";
import clsx from "clsx";
import { PanelLeftClose, PanelLeftOpen } from "lucide-react";
import { api } from "../api/client";
import { Button } from "../components/Button";
import { Tooltip } from "../components/Tooltip";
import { count } from "../lib/format";
import { usePref } from "../lib/prefs";
import { useApi } from "../lib/query";
import { useShortcut } from "../lib/shortcuts";
import { type Place, placeOf, PLACES } from "./places";

export function Nav() {
  const [narrow, setNarrow] = usePref("nav.narrow", false);
  useShortcut("[", "Fold or unfold the navigation", () => setNarrow(!narrow), {
    group: "Everywhere",
  });
  const here = placeOf(useLocation().pathname);
  const asked = useApi(["inbox", "badge"], (signal) => api.GET("/api/v1/inbox", { signal }));
  return (
    <nav
      aria-label="Pages"
      className={clsx(
        "flex shrink-0 flex-col border-r border-line bg-surface py-3",
        narrow ? "w-14 px-2" : "w-52 px-3 max-[900px]:w-14 max-[900px]:px-2",
      )}
    >
      <Link
        to="/"
        aria-label="AgentFlow, home"
        className="mb-3 flex h-8 items-center gap-2 rounded-md px-2 font-semibold tracking-tight"
      >
        <Mark />
        <span className={narrow ? "sr-only" : "max-[900px]:sr-only"}>AgentFlow</span>
      </Link>
      <ul className="flex flex-1 flex-col gap-0.5 overflow-y-auto">
        {PLACES.map((place) => (
          <li key={place.to} className={clsx(place.to === "/settings" && "mt-auto")}>
            <Item
              place={place}
              here={here === place}
              narrow={narrow}
              badge={place.to === "/inbox" ? (asked.data?.items.length ?? 0) : 0}
            />
          </li>
        ))}
      </ul>
      <div className={clsx("mt-2 flex max-[900px]:hidden", narrow ? "justify-center" : "px-1")}>
        <Button
          variant="ghost"
          size="sm"
          icon={narrow ? PanelLeftOpen : PanelLeftClose}
          aria-label={narrow ? "Unfold the navigation" : "Fold the navigation"}
          aria-expanded={!narrow}
          onClick={() => setNarrow(!narrow)}
        />
      </div>
    </nav>
  );
}

function Item({
  place,
  here,
  narrow,
  badge,
}: {
  place: Place;
  here: boolean;
  narrow: boolean;
  badge: number;
}) {
  const Icon = place.icon;
  const link = (
    <Link
      to={place.to}
      aria-current={here ? "page" : undefined}
      className={clsx(
        "relative flex h-8 items-center gap-2.5 rounded-md px-2.5 text-[13px]",
        here
          ? "bg-accent-soft font-medium text-text"
          : "text-muted hover:bg-sunken hover:text-text",
      )}
    >
      <Icon aria-hidden size={16} className={clsx("shrink-0", here && "text-accent")} />
      <span className={narrow ? "sr-only" : "flex-1 max-[900px]:sr-only"}>{place.name}</span>
      {badge > 0 && (
        <span
          className={clsx(
            "rounded-full bg-needs-you text-center text-[11px] font-semibold leading-4 tabular-nums text-surface",
            narrow
              ? "absolute right-0 top-0 min-w-4 px-1"
              : "min-w-5 px-1.5 max-[900px]:absolute max-[900px]:right-0 max-[900px]:top-0",
          )}
        >
          {badge > 99 ? "99+" : count(badge)}
          <span className="sr-only"> waiting for a person</span>
        </span>
      )}
    </Link>
  );
  return narrow ? (
    <Tooltip text={place.name} side="right">
      {link}
    </Tooltip>
  ) : (
    link
  );
}

function Mark() {
  return (
    <svg aria-hidden viewBox="0 0 32 32" className="size-5 shrink-0">
      <rect width="32" height="32" rx="7" className="fill-accent" />
      <path
        d="M8 10h6a4 4 0 0 1 4 4v4a4 4 0 0 0 4 4h2"
        fill="none"
        className="stroke-on-accent"
        strokeWidth="2.6"
        strokeLinecap="round"
      />
      <circle cx="8" cy="10" r="3" className="fill-on-accent" />
      <circle cx="24" cy="22" r="3" className="fill-on-accent" />
    </svg>
  );
}
