/** A secret, once. */
import { CopyButton } from "../../components/CopyButton";
import { Dialog } from "../../components/Dialog";

export function Secret({ title, secret, onClose }: { title: string; secret: string | undefined; onClose: () => void }) {
  return (
    <Dialog
      open={secret !== undefined}
      onOpenChange={(open) => !open && onClose()}
      title={title}
      description="Copy it now: it is not shown again, and kept nowhere."
      size="md"
    >
      <p className="flex items-center gap-2 rounded-md border border-line bg-sunken px-3 py-2">
        <code className="min-w-0 flex-1 break-all font-mono text-xs">{secret}</code>
        <CopyButton text={secret ?? ""} label="Copy the secret" />
      </p>
    </Dialog>
  );
}
