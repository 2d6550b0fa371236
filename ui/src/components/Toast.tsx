/** Short messages about what was just done: `toast("Saved")`, `toast.error(problem)`. */
import clsx from "clsx";
import { CircleCheck, CircleX, X } from "lucide-react";
import { Toast as Radix } from "radix-ui";
import { type ReactNode, useSyncExternalStore } from "react";
import { ApiError } from "../api/client";

interface Message {
  id: number;
  kind: "done" | "failed";
  text: ReactNode;
  hint?: ReactNode;
}

let messages: Message[] = [];
let last = 0;
const listeners = new Set<() => void>();

function change(next: Message[]): void {
  messages = next;
  listeners.forEach((listener) => listener());
}

function show(kind: Message["kind"], text: ReactNode, hint?: ReactNode): void {
  last += 1;
  change([...messages.slice(-3), { id: last, kind, text, hint }]);
}

export function toast(text: ReactNode, hint?: ReactNode): void {
  show("done", text, hint);
}

toast.error = (problem: unknown, hint?: ReactNode): void => {
  if (problem instanceof ApiError) {
    show("failed", problem.message, hint ?? problem.problem?.hint ?? undefined);
  } else if (problem instanceof Error) show("failed", problem.message, hint);
  else show("failed", String(problem), hint);
};

export function Toaster() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => messages,
  );
  return (
    <Radix.Provider swipeDirection="right">
      {shown.map((message) => (
        <Radix.Root
          key={message.id}
          duration={message.kind === "failed" ? 12_000 : 4_000}
          type={message.kind === "failed" ? "foreground" : "background"}
          onOpenChange={(open) => {
            if (!open) change(messages.filter((other) => other.id !== message.id));
          }}
          className="flex items-start gap-2 rounded-md border border-line bg-raised px-3 py-2.5 text-[13px] shadow-lg"
        >
          {message.kind === "done" ? (
            <CircleCheck aria-hidden size={16} className="mt-0.5 shrink-0 text-done" />
          ) : (
            <CircleX aria-hidden size={16} className="mt-0.5 shrink-0 text-failed" />
          )}
          <div className="min-w-0 flex-1">
            <Radix.Title className={clsx("break-words", message.hint && "font-medium")}>
              {message.text}
            </Radix.Title>
            {message.hint && (
              <Radix.Description className="mt-0.5 break-words text-muted">
                {message.hint}
              </Radix.Description>
            )}
          </div>
          <Radix.Close aria-label="Dismiss" className="text-muted hover:text-text">
            <X aria-hidden size={14} />
          </Radix.Close>
        </Radix.Root>
      ))}
      <Radix.Viewport className="fixed bottom-4 right-4 z-[60] flex w-96 max-w-[calc(100vw-2rem)] flex-col gap-2" />
    </Radix.Provider>
  );
}
