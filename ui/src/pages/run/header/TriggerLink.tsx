/** What started a run, with the way there. */
import { Link } from "@tanstack/react-router";
import { shortId } from "../../../lib/format";

export function TriggerLink({ trigger }: { trigger: string }) {
  const [kind, ...rest] = trigger.split(":");
  const name = rest.join(":");
  const look = "text-accent hover:underline";
  if (kind === "run" && name) {
    return (
      <Link to="/runs/$run" params={{ run: name }} search={{}} className={look}>
        run <span className="font-mono text-xs">{shortId(name)}</span>
      </Link>
    );
  }
  if (kind === "schedule" && name) {
    return (
      <Link to="/schedules" search={{}} className={look}>
        schedule {name}
      </Link>
    );
  }
  return <span>{name ? `${kind} ${name}` : kind}</span>;
}
