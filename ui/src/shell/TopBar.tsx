/** The bar above every page: where this is, search, whether it is live, and how it looks. */
import { Keyboard, Monitor, Moon, Search, Sun, UserRound } from "lucide-react";
import { api, token } from "../api/client";
import { session, signOut } from "../api/session";
import { Button } from "../components/Button";
import { Menu, MenuCheck, MenuItem, MenuLabel, MenuSeparator } from "../components/Menu";
import { useApi } from "../lib/query";
import { type Theme, useTheme } from "../lib/theme";
import { type TimeStyle, useTimeStyle } from "../lib/time";
import { Crumbs } from "./Crumbs";
import { Keys } from "./Help";
import { LivePill } from "./LivePill";

const THEMES: { theme: Theme; name: string }[] = [
  { theme: "system", name: "As the system" },
  { theme: "light", name: "Light" },
  { theme: "dark", name: "Dark" },
];
const STYLES: { style: TimeStyle; name: string }[] = [
  { style: "relative", name: "Relative (5m ago)" },
  { style: "local", name: "Local time" },
  { style: "utc", name: "UTC" },
];

export function TopBar({ onSearch, onHelp }: { onSearch: () => void; onHelp: () => void }) {
  return (
    <header className="flex h-12 shrink-0 items-center gap-3 border-b border-line bg-surface px-6">
      <Crumbs />
      <button
        type="button"
        onClick={onSearch}
        className="flex h-8 w-64 items-center gap-2 rounded-md border border-line bg-bg px-2.5 text-[13px] text-muted hover:border-faint max-[1100px]:w-44"
      >
        <Search aria-hidden size={14} />
        <span className="flex-1 text-left">Search</span>
        <span aria-hidden className="flex gap-1">
          <Keys keys="mod+k" />
        </span>
      </button>
      <LivePill />
      <ThemeMenu />
      <UserMenu onHelp={onHelp} />
    </header>
  );
}

function ThemeMenu() {
  const [theme, setTheme] = useTheme();
  const icon = theme === "dark" ? Moon : theme === "light" ? Sun : Monitor;
  return (
    <Menu trigger={<Button variant="ghost" icon={icon} aria-label="Colours" title="Colours" />}>
      <MenuLabel>Colours</MenuLabel>
      {THEMES.map((choice) => (
        <MenuCheck
          key={choice.theme}
          checked={theme === choice.theme}
          onCheckedChange={() => setTheme(choice.theme)}
        >
          {choice.name}
        </MenuCheck>
      ))}
    </Menu>
  );
}

function UserMenu({ onHelp }: { onHelp: () => void }) {
  const me = useApi(["me"], (signal) => api.GET("/api/v1/me", { signal }));
  const [style, setStyle] = useTimeStyle();
  return (
    <Menu
      trigger={
        <Button variant="ghost" icon={UserRound} aria-label="You and your settings" title="You" />
      }
    >
      {me.data && (
        <>
          <MenuLabel>
            {me.data.subject} · {me.data.role}
          </MenuLabel>
          <MenuSeparator />
        </>
      )}
      <MenuLabel>Times</MenuLabel>
      {STYLES.map((choice) => (
        <MenuCheck
          key={choice.style}
          checked={style === choice.style}
          onCheckedChange={() => setStyle(choice.style)}
        >
          {choice.name}
        </MenuCheck>
      ))}
      <MenuSeparator />
      <MenuItem icon={Keyboard} hint="?" onSelect={onHelp}>
        Keyboard shortcuts
      </MenuItem>
      {token.get() && (
        <MenuItem
          icon={UserRound}
          onSelect={() => {
            token.set(null);
            location.reload();
          }}
        >
          Forget the token
        </MenuItem>
      )}
      {!token.get() && session.csrf() && (
        <MenuItem icon={UserRound} onSelect={() => void signOut().then(() => location.reload())}>
          Sign out
        </MenuItem>
      )}
    </Menu>
  );
}
