/** Filters with a name, one's own and shared ones. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Bookmark, BookmarkPlus, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, type Schemas, unwrap } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Checkbox, Input } from "../../components/Input";
import { Menu, MenuItem, MenuLabel, MenuSeparator } from "../../components/Menu";
import { toast } from "../../components/Toast";
import { useApi } from "../../lib/query";

type SavedView = Schemas["SavedView"];
const KEY = ["views", "runs"];

export function ViewsMenu({ query, onOpen }: { query: string; onOpen: (query: string) => void }) {
  const [saving, setSaving] = useState(false);
  const [managing, setManaging] = useState(false);
  const views = useApi(KEY, (signal) =>
    api.GET("/api/v1/views", { params: { query: { page: "runs" } }, signal }),
  );
  const all = views.data ?? [];
  return (
    <>
      <Menu trigger={<Button icon={Bookmark}>Views</Button>}>
        <MenuLabel>Saved views</MenuLabel>
        {all.length === 0 && (
          <div className="px-2 pb-1.5 text-xs text-muted">A view is a filter with a name.</div>
        )}
        {all.map((view) => (
          <MenuItem
            key={view.id}
            icon={Bookmark}
            hint={view.shared ? "shared" : undefined}
            onSelect={() => onOpen(view.query)}
          >
            {view.name}
          </MenuItem>
        ))}
        <MenuSeparator />
        <MenuItem icon={BookmarkPlus} onSelect={() => setSaving(true)}>
          Save these filters…
        </MenuItem>
        {all.length > 0 && (
          <MenuItem icon={Trash2} onSelect={() => setManaging(true)}>
            Remove views…
          </MenuItem>
        )}
      </Menu>
      {saving && <SaveDialog query={query} onClose={() => setSaving(false)} />}
      {managing && <ManageDialog views={all} onClose={() => setManaging(false)} />}
    </>
  );
}

function SaveDialog({ query, onClose }: { query: string; onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [shared, setShared] = useState(false);
  const save = useMutation({
    mutationFn: () =>
      unwrap(api.POST("/api/v1/views", { body: { name: name.trim(), page: "runs", query, shared } })),
    onSuccess: (view) => {
      void queries.invalidateQueries({ queryKey: KEY });
      toast(`Saved the view ${view.name}`);
      onClose();
    },
    onError: (error) => toast.error(error),
  });
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      size="sm"
      title="Save these filters"
      description={query ? undefined : "No filter is on: the view will show all runs."}
      footer={
        <Button
          type="submit"
          form="save-view"
          variant="primary"
          busy={save.isPending}
          disabled={name.trim() === ""}
        >
          Save
        </Button>
      }
    >
      <form
        id="save-view"
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <Field label="Name">
          <Input value={name} onChange={(event) => setName(event.target.value)} />
        </Field>
        <Checkbox checked={shared} onChange={setShared} label="Everybody sees it" />
      </form>
    </Dialog>
  );
}

function ManageDialog({ views, onClose }: { views: SavedView[]; onClose: () => void }) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: (view: string) =>
      unwrap(api.DELETE("/api/v1/views/{view}", { params: { path: { view } } })),
    onSuccess: () => void queries.invalidateQueries({ queryKey: KEY }),
    onError: (error) => toast.error(error),
  });
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} size="sm" title="Saved views">
      <ul>
        {views.map((view) => (
          <li
            key={view.id}
            className="flex h-9 items-center gap-2 border-b border-line text-[13px] last:border-0"
          >
            <span className="min-w-0 flex-1 truncate">{view.name}</span>
            <span className="text-xs text-muted">{view.shared ? `shared by ${view.owner}` : ""}</span>
            <Button
              variant="ghost"
              size="sm"
              icon={Trash2}
              aria-label={`Remove the view ${view.name}`}
              onClick={() => remove.mutate(view.id)}
            />
          </li>
        ))}
        {views.length === 0 && <li className="text-[13px] text-muted">There is none.</li>}
      </ul>
    </Dialog>
  );
}
