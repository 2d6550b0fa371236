/** A sentence of the server: what it has in backticks is code, and a step that it names a link. */
import { Fragment } from "react";

export function Sentence({
  text,
  step,
  onStep,
}: {
  text: string;
  step?: string | null;
  onStep?: (path: string) => void;
}) {
  return (
    <>
      {text.split("`").map((part, at) => {
        if (at % 2 === 0) return <Fragment key={at}>{part}</Fragment>;
        if (part === step && part !== "" && onStep) {
          return (
            <button
              key={at}
              className="font-mono text-[0.92em] text-accent underline-offset-2 hover:underline"
              onClick={() => onStep(part)}
            >
              {part}
            </button>
          );
        }
        return (
          <code key={at} className="font-mono text-[0.92em]">
            {part}
          </code>
        );
      })}
    </>
  );
}

/** The same where there is only room for text. */
export const plain = (text: string) => text.replaceAll("`", "");
