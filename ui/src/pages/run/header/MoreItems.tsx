/** Taking a run elsewhere: links, commands, everything in one file. */
import { Download, Link2, SquareTerminal } from "lucide-react";
import { api, unwrap } from "../../../api/client";
import { MenuItem, MenuSeparator } from "../../../components/Menu";
import { toast } from "../../../components/Toast";
import { shortId } from "../../../lib/format";
import { at, type Run } from "../queries";
import { asCli, asCurl } from "./commands";
import { saveText } from "./saving";

async function copy(text: string, what: string) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}`);
  } catch {
    toast.error("The browser does not let this page write to the clipboard.", text);
  }
}

async function saveBundle(run: Run) {
  try {
    const bundle = await unwrap(api.GET("/api/v1/runs/{run}/export", at(run.id)));
    saveText(`run-${shortId(run.id)}.json`, JSON.stringify(bundle, null, 2), "application/json");
  } catch (problem) {
    toast.error(problem);
  }
}

export function MoreItems({ run }: { run: Run }) {
  return (
    <>
      <MenuItem icon={Link2} onSelect={() => void copy(location.href, "the link")}>
        Copy link
      </MenuItem>
      <MenuItem icon={SquareTerminal} onSelect={() => void copy(asCli(run), "the command")}>
        Copy as CLI
      </MenuItem>
      <MenuItem
        icon={SquareTerminal}
        onSelect={() => void copy(asCurl(run, location.origin), "the request")}
      >
        Copy as curl
      </MenuItem>
      <MenuSeparator />
      <MenuItem icon={Download} onSelect={() => void saveBundle(run)}>
        Export as a bundle
      </MenuItem>
    </>
  );
}
