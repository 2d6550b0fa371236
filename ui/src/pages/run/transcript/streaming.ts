/** What a model says now, as lines of the transcript that it is going to be in. */
import type { Spoken } from "../../../lib/spoken";
import type { Transcript } from "../queries";
import type { TranscriptLine } from "./numbering";

/**
 * The lines to show below those that are committed. None as soon as these have the same answer, so it
 * is never there twice; none when the turn has ended without it.
 */
export function streamed(transcript: Transcript, spoken: Spoken | undefined): TranscriptLine[] {
  if (!spoken || transcript.outcome !== null) return [];
  const { request, over, parts } = spoken;
  if (over && transcript.state === "suspended") return [];
  const known = transcript.calls.map((call) => call.number);
  if (known.some((number) => number >= request)) return [];
  return parts.map(({ kind, text, tool }) => ({
    kind,
    text,
    tool,
    arguments: null,
    failed: false,
    request,
  }));
}
