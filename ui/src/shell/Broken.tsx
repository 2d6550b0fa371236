/** Addresses that lead nowhere, and pages that have a mistake: the rest of the shell still works. */
import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { Button, buttonClass } from "../components/Button";
import { CopyButton } from "../components/CopyButton";
import { Page } from "../components/Page";
import { Empty } from "../components/States";

export function NotFound() {
  return (
    <Page title="There is no such page">
      <Empty
        title="Nothing is at this address"
        hint="It may have been typed wrong, or be of another version."
        action={
          <Link to="/" className={buttonClass()}>
            Go home
          </Link>
        }
      />
    </Page>
  );
}

export function Broken({ error, reset }: ErrorComponentProps) {
  const failure = error instanceof Error ? error : new Error(String(error));
  return (
    <Page title="This page has a mistake">
      <div role="alert" className="flex flex-col items-start gap-3 rounded-lg border border-line bg-surface p-4">
        <p>
          What it was to show is safe: only the page could not be drawn. Please report it with this
          text.
        </p>
        <pre className="max-w-full overflow-x-auto whitespace-pre-wrap font-mono text-xs text-failed">
          {failure.message}
        </pre>
        <div className="flex gap-2">
          <Button onClick={reset}>Try again</Button>
          <CopyButton text={`${failure.message}\n${failure.stack ?? ""}`}>Copy the details</CopyButton>
        </div>
      </div>
    </Page>
  );
}
