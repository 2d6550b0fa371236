/** Asks before something that cannot be taken back. */
import { type ReactNode } from "react";
import { Button } from "./Button";
import { Dialog } from "./Dialog";

export function Confirm({
  open,
  onOpenChange,
  title,
  children,
  verb,
  busy,
  danger = false,
  onConfirm,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: ReactNode;
  children: ReactNode;
  /** What the button says. */
  verb: string;
  busy?: boolean;
  danger?: boolean;
  onConfirm: () => void;
}) {
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title={title}
      size="sm"
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>Keep it</Button>
          <Button variant={danger ? "danger" : "primary"} busy={busy} onClick={onConfirm}>
            {verb}
          </Button>
        </>
      }
    >
      <p className="text-[13px] text-muted">{children}</p>
    </Dialog>
  );
}
