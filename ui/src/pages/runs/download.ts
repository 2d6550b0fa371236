/** What is listed, as a file: all runs that match, up to a limit that is told. */
import { api, unwrap } from "../../api/client";
import type { RunColumn, RunLine } from "./columns";
import type { Filters, RunWord } from "./filters";

export const MOST = 10_000;

export async function matching(
  filters: Filters,
  state: RunWord | undefined,
): Promise<{ runs: RunLine[]; cut: boolean }> {
  const runs: RunLine[] = [];
  let cursor: string | undefined;
  do {
    const page = await unwrap(
      api.GET("/api/v1/runs", { params: { query: { ...filters, state, cursor, limit: 500 } } }),
    );
    runs.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor && runs.length < MOST);
  return { runs, cut: cursor !== undefined };
}

/** A cell that a spreadsheet takes for text, also if it begins as a formula does. */
export function csvCell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csv(runs: RunLine[], columns: RunColumn[]): string {
  const lines = [
    columns.map((column) => csvCell(column.key)),
    ...runs.map((run) => columns.map((column) => csvCell(column.text(run)))),
  ];
  return `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
}

export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
