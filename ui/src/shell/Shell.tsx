/** What is around every page. A signed link is answered by people without an account: no shell. */
import { Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Toaster } from "../components/Toast";
import { useLive } from "../lib/live";
import { useShortcut } from "../lib/shortcuts";
import { useTheme } from "../lib/theme";
import { DevBar } from "./DevBar";
import { Help } from "./Help";
import { Nav } from "./Nav";
import { Palette } from "./Palette";
import { type Place, PLACES } from "./places";
import { TokenDialog } from "./TokenDialog";
import { TopBar } from "./TopBar";

export function Shell() {
  const { pathname, search } = useLocation();
  useTheme();
  const bare = pathname.startsWith("/answer/") || "embed" in search;
  if (bare) {
    return (
      <main id="main" className="h-full overflow-auto">
        <Outlet />
        <Toaster />
        {!pathname.startsWith("/answer/") && <TokenDialog />}
      </main>
    );
  }
  return <Full />;
}

function Full() {
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  useLive(["inbox"]);
  useShortcut("mod+k", "Search and commands", () => setPalette(true), { group: "Everywhere" });
  useShortcut("?", "These shortcuts", () => setHelp(true), { group: "Everywhere" });
  return (
    <div className="flex h-full">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:absolute focus:left-2 focus:top-2 focus:z-50 focus:rounded focus:bg-accent focus:px-3 focus:py-2 focus:text-on-accent"
      >
        Skip to the content
      </a>
      {PLACES.map((place) => (
        <GoTo key={place.to} place={place} />
      ))}
      <Nav />
      <div className="flex min-w-0 flex-1 flex-col">
        <TopBar onSearch={() => setPalette(true)} onHelp={() => setHelp(true)} />
        <DevBar />
        <main id="main" tabIndex={-1} className="min-h-0 min-w-0 flex-1 overflow-auto outline-none">
          <Outlet />
        </main>
      </div>
      <Palette open={palette} onOpenChange={setPalette} onHelp={() => setHelp(true)} />
      <Help open={help} onOpenChange={setHelp} />
      <TokenDialog />
      <Toaster />
    </div>
  );
}

function GoTo({ place }: { place: Place }) {
  const navigate = useNavigate();
  useShortcut(`g ${place.key}`, place.name, () => void navigate({ to: place.to }), {
    group: "Go to",
  });
  return null;
}
