/** Cron in words, for those who do not read it. */
import cronstrue from "cronstrue";

export function cronWords(spec: string): string {
  try {
    return cronstrue.toString(spec, { use24HourTimeFormat: true, verbose: false });
  } catch {
    return "not a cron expression yet";
  }
}
