/** What can be done to a run or a step, in words. */
import type { Schemas } from "../../../api/client";

export type Verb =
  | "cancel"
  | "pause"
  | "resume"
  | "retry"
  | "rerun"
  | "fork"
  | "skip"
  | "continue"
  | "fail";

/** Fields that are left out have defaults at the server. */
export type ActionForm = Partial<Schemas["ActionForm"]>;

export interface Ask {
  verb: Verb;
  /** the path of the step; absent for the whole run */
  step?: string;
}

interface Words {
  title: (step: string | undefined) => string;
  button: string;
  danger?: boolean;
  /** what the person fills in */
  form?: "arguments" | "result" | "reason" | "needed reason";
  /** whether `force` means something: work that cannot be taken back is done again */
  force?: boolean;
}

export const VERBS: Record<Verb, Words> = {
  cancel: { title: () => "Cancel the run", button: "Cancel the run", danger: true, form: "reason" },
  pause: { title: () => "Pause the run", button: "Pause" },
  resume: { title: () => "Resume the run", button: "Resume" },
  retry: {
    title: (step) => (step === undefined ? "Retry what failed" : `Retry ${step}`),
    button: "Retry",
    force: true,
  },
  rerun: { title: () => "Rerun from the start", button: "Rerun" },
  fork: {
    title: (step) => (step === undefined ? "Fork with edited input" : `Fork from ${step}`),
    button: "Fork",
    form: "arguments",
    force: true,
  },
  skip: { title: (step) => `Skip ${step}`, button: "Skip" },
  continue: {
    title: (step) => `Continue ${step} with a result`,
    button: "Continue",
    form: "result",
  },
  fail: { title: (step) => `Fail ${step}`, button: "Fail the step", danger: true, form: "needed reason" },
};

/** The values that differ from those that were there: only these are sent. */
export function edited(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): Record<string, unknown> {
  const same = (name: string) => JSON.stringify(before[name]) === JSON.stringify(after[name]);
  return Object.fromEntries(Object.entries(after).filter(([name]) => !same(name)));
}
