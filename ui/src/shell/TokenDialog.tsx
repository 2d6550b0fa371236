/** Asks for a token when the server does not know who is asking, and keeps it in this browser. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ApiError, token, unwrap } from "../api/client";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Input } from "../components/Input";
import { SignIn } from "../components/SignIn";
import { Command } from "../components/States";
import { live } from "../lib/live";
import { askForToken, useTokenNeeded } from "./access";

export function TokenDialog() {
  const open = useTokenNeeded();
  const queries = useQueryClient();
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);

  const enter = async () => {
    const before = token.get();
    setBusy(true);
    setError(undefined);
    token.set(typed.trim());
    try {
      await unwrap(api.GET("/api/v1/me"));
      setTyped("");
      askForToken(false);
      live.resume();
      await queries.resetQueries();
    } catch (problem) {
      token.set(before);
      const refused = problem instanceof ApiError && problem.status === 401;
      setError(refused ? "The server does not know this token." : String((problem as Error).message));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog
      open={open}
      onOpenChange={askForToken}
      size="sm"
      title="Who is asking?"
      description="This server answers only to people with a token. It is kept in this browser."
      footer={
        <>
          <SignIn />
          <Button
            type="submit"
            form="token-form"
            variant="primary"
            busy={busy}
            disabled={typed.trim() === ""}
          >
            Continue
          </Button>
        </>
      }
    >
      <form
        id="token-form"
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          void enter();
        }}
      >
        <Field label="Token" error={error}>
          <Input
            type="password"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </Field>
        <p className="text-[13px] text-muted">
          An administrator makes one on the Settings page, or on the machine of the server:
        </p>
        <Command text="afl tokens create NAME --role operator" />
      </form>
    </Dialog>
  );
}
