/** The same things from a terminal. */
import type { Run } from "../queries";

/** A word that a POSIX shell takes as it is. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function labels(run: Run): string[] {
  return Object.entries(run.labels).map(([name, value]) => `${name}=${value}`);
}

export function asCli(run: Run): string {
  const inputs = Object.entries(run.inputs).map(([name, value]) =>
    quoted(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`),
  );
  return [
    `afl submit ${quoted(run.workflow)}`,
    ...inputs.map((one) => `-i ${one}`),
    ...labels(run).map((one) => `--label ${quoted(one)}`),
    `--program ${run.program}`,
  ].join(" ");
}

export function asCurl(run: Run, origin: string): string {
  const body = {
    workflow: run.workflow,
    inputs: run.inputs,
    program: run.program,
    labels: run.labels,
  };
  return [
    `curl -X POST ${quoted(`${origin}/api/v1/runs`)}`,
    `-H 'Content-Type: application/json'`,
    `-H "Authorization: Bearer $AFL_TOKEN"`,
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(" ");
}
