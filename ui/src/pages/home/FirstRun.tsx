/** Nothing was ever run here: three commands, and what each of them does. */
import { Link } from "@tanstack/react-router";
import { Command } from "../../components/States";

const STEPS = [
  {
    title: "Make a project",
    command: "afl init demo && cd demo",
    text: "Writes a flow, its handlers and a test into a new folder.",
  },
  {
    title: "Start everything",
    command: "afl dev",
    text: "Deploys the flow, starts a worker and this dashboard, and follows your edits.",
  },
  {
    title: "Start a run",
    command: "afl submit hello.SayHello -i name=Ada",
    text: "The run appears here while it goes.",
  },
];

export function FirstRun() {
  return (
    <section aria-labelledby="first" className="mx-auto w-full max-w-2xl py-6">
      <h2 id="first" className="text-lg font-semibold">
        Nothing has run here yet
      </h2>
      <p className="mt-1 text-muted">
        A run is one execution of a workflow. Three commands make the first one:
      </p>
      <ol className="mt-5 flex flex-col gap-3">
        {STEPS.map((step, index) => (
          <li
            key={step.title}
            className="flex gap-4 rounded-lg border border-line bg-surface px-4 py-3"
          >
            <span
              aria-hidden
              className="mt-0.5 flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft text-xs font-semibold text-accent"
            >
              {index + 1}
            </span>
            <div className="flex min-w-0 flex-col items-start gap-1.5">
              <span className="font-medium">{step.title}</span>
              <Command text={step.command} />
              <span className="text-[13px] text-muted">{step.text}</span>
            </div>
          </li>
        ))}
      </ol>
      <p className="mt-4 text-[13px] text-muted">
        Or write a flow in the{" "}
        <Link to="/playground" className="text-accent underline underline-offset-2">
          playground
        </Link>
        , which needs no project.
      </p>
    </section>
  );
}
