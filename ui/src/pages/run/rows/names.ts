/** What statements are called in the program: rows of blocks are named by it. */
import { createContext, useContext } from "react";
import type { Row } from "../queries";
import { rowName } from "./words";

export const StatementNames = createContext<ReadonlyMap<string, string>>(new Map());

const NAMED = new Set(["AndMap", "AndWhen", "AndCatch", "AndScript", "YieldAssignment"]);

export function useRowName(row: Pick<Row, "path" | "name" | "kind" | "statement">): string {
  const names = useContext(StatementNames);
  const named = NAMED.has(row.kind) || /^yield-\d+$/.test(row.name);
  return (named && names.get(row.statement)) || rowName(row);
}
