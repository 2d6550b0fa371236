/** Paths of steps: `0/pull` is the step `pull` of the first clause of the run's workflow. */

export function parentOf(path: string): string {
  const head = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
  if (head === "with") return "";
  return head.endsWith("/with") ? head.slice(0, -"/with".length) : head;
}

/** The paths that a path stands in, the outermost first, without the root. */
export function above(path: string): string[] {
  const found: string[] = [];
  for (let at = parentOf(path); at !== ""; at = parentOf(at)) found.unshift(at);
  return found;
}

export function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
