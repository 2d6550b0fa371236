/**
 * The tree of a run as far as it was opened, as a list of flat rows. Nothing here grows with the
 * number of steps: places are counted from the rows that are open, never by listing all of them.
 */
import { api, unwrap } from "../../../api/client";
import type { Row, RowPage } from "../queries";
import { Level, type RowQuery, WINDOW, type WindowPlace } from "./level";
import { above, lastPart, parentOf } from "./path";

export interface Slot {
  level: Level;
  index: number;
  depth: number;
  row: Row | undefined;
}

interface Open {
  index: number;
  path: string;
}

/** So many windows are asked for at the same time. */
const AT_ONCE = 4;

export type ReadRows = (run: string, query: RowQuery, place: WindowPlace) => Promise<RowPage>;

const readRows: ReadRows = (run, { parent, state, facet, text, statement }, place) => {
  const query = { parent, state, facet, text, statement, ...place, limit: WINDOW };
  return unwrap(
    api.GET("/api/v1/runs/{run}/rows", { params: { path: { run }, query: query as never } }),
  );
};

export class RowStore {
  readonly open = new Set<string>();
  private levels = new Map<string, Level>();
  private places = new Map<string, { parent: string; index: number }>();
  private listeners = new Set<() => void>();
  private sizes = new Map<string, number>();
  private opened = new Map<string, Open[]>();
  private flat: { key: string; level: Level } | null = null;
  private mark = "";
  private pending: { level: Level; window: number }[] = [];
  private busy = 0;
  version = 0;

  constructor(
    readonly run: string,
    private readonly read: ReadRows = readRows,
  ) {}

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  snapshot = () => this.version;

  /** Another mark makes what was read stale; what is in sight is then read again. */
  setMark(mark: string): void {
    if (mark === this.mark) return;
    this.mark = mark;
    this.changed();
  }

  /** Lists what matches instead of the tree; null for the tree. Called while the rows are drawn,
   * which see it at once: nobody is told. */
  setFilter(query: RowQuery | null): void {
    const key = query === null ? "" : JSON.stringify(query);
    if (key === (this.flat?.key ?? "")) return;
    this.flat = query === null ? null : { key, level: new Level(query) };
    this.forget();
  }

  /** Where the drawing starts: a workflow of one block is drawn without it. */
  get base(): string {
    const root = this.level("");
    const only = root.known && root.count === 1 ? root.row(0) : undefined;
    return only?.kind === "AndThen" && only.has_children ? only.path : "";
  }

  get size(): number {
    return this.flat?.level.count ?? this.sizeOf(this.base);
  }

  get settled(): boolean {
    return (this.flat?.level ?? this.level(this.base)).known;
  }

  at(index: number): Slot {
    if (this.flat) {
      const level = this.flat.level;
      return { level, index, depth: 0, row: level.row(index) };
    }
    return this.locate(this.base, index, 0);
  }

  /** The flat place of a row that was read and whose parents are open. */
  indexOf(path: string): number | null {
    if (this.flat) {
      for (const [index, row] of this.flat.level.entries()) if (row.path === path) return index;
      return null;
    }
    const place = this.places.get(path);
    if (place === undefined) return null;
    let index = place.index;
    for (const open of this.openIn(place.parent)) {
      if (open.index < place.index) index += this.sizeOf(open.path);
    }
    if (place.parent === this.base) return index;
    if (!this.open.has(place.parent)) return null;
    const above = this.indexOf(place.parent);
    return above === null ? null : above + 1 + index;
  }

  toggle(path: string, open = !this.open.has(path)): void {
    if (open) this.open.add(path);
    else this.open.delete(path);
    this.changed();
  }

  /** Opens everything above a step, reading what is missing on the way. */
  async reveal(path: string): Promise<void> {
    for (const parent of ["", ...above(path)]) {
      const level = this.level(parent);
      await this.loaded(level, 0);
      const step = above(path).find((one) => parentOf(one) === parent) ?? path;
      const number = Number(lastPart(step));
      if (!this.places.has(step) && level.total !== null && number < level.total) {
        await this.loaded(level, Math.floor(number / WINDOW));
      }
      if (parent !== "") this.open.add(parent);
    }
    this.changed();
  }

  /** Reads the windows that a stretch of flat rows needs. */
  need(from: number, to: number): void {
    const wanted: typeof this.pending = [];
    for (let at = from; at <= to && at < this.size; at++) {
      const { level, index } = this.at(at);
      const window = level.windowOf(index);
      const last = wanted.at(-1);
      if (last?.level === level && last.window === window) continue;
      if (level.needs(window, this.mark)) wanted.push({ level, window });
    }
    const root = this.level("");
    if (!this.flat && root.needs(0, this.mark)) wanted.push({ level: root, window: 0 });
    this.pending = wanted;
    this.pump();
  }

  /** Every row that was read: what the time axis is made for. */
  *known(): Iterable<Row> {
    const levels = this.flat ? [this.flat.level] : this.levels.values();
    for (const level of levels) for (const [, row] of level.entries()) yield row;
  }

  private pump(): void {
    while (this.busy < AT_ONCE) {
      const next = this.pending.shift();
      if (next === undefined) return;
      if (next.level.needs(next.window, this.mark)) void this.load(next.level, next.window);
    }
  }

  private async loaded(level: Level, window: number): Promise<void> {
    if (level.needs(window, this.mark)) await this.load(level, window);
  }

  private async load(level: Level, window: number): Promise<void> {
    const mark = this.mark;
    const { parent } = level.query;
    const place = level.begin(window);
    this.busy += 1;
    try {
      const page = await this.read(this.run, level.query, place);
      // what was read before any mark was known bears that of its own answer
      const read = mark || page.mark;
      this.mark ||= page.mark;
      level.take(window, page, read);
      if (parent !== undefined) this.remember(parent, level);
    } catch {
      level.fail(window, mark);
    } finally {
      this.busy -= 1;
      this.changed();
      this.pump();
    }
  }

  private remember(parent: string, level: Level): void {
    for (const [index, row] of level.entries()) {
      const isNew = !this.places.has(row.path);
      this.places.set(row.path, { parent, index });
      // a block, or a row that stands alone, says nothing that the rows below it do not say better
      const opens = level.count === 1 || (parent === "" && row.kind === "AndThen");
      if (isNew && row.has_children && opens) this.open.add(row.path);
    }
  }

  private level(parent: string): Level {
    let level = this.levels.get(parent);
    if (level === undefined) this.levels.set(parent, (level = new Level({ parent })));
    return level;
  }

  private locate(parent: string, index: number, depth: number): Slot {
    const level = this.level(parent);
    let left = index;
    let next = 0;
    for (const open of this.openIn(parent)) {
      const before = open.index - next + 1;
      if (left < before) break;
      left -= before;
      next = open.index + 1;
      const size = this.sizeOf(open.path);
      if (left < size) return this.locate(open.path, left, depth + 1);
      left -= size;
    }
    return { level, index: next + left, depth, row: level.row(next + left) };
  }

  private sizeOf(parent: string): number {
    let size = this.sizes.get(parent);
    if (size === undefined) {
      size = this.level(parent).count;
      for (const open of this.openIn(parent)) size += this.sizeOf(open.path);
      this.sizes.set(parent, size);
    }
    return size;
  }

  private openIn(parent: string): Open[] {
    let found = this.opened.get(parent);
    if (found === undefined) {
      found = [];
      for (const path of this.open) {
        const place = this.places.get(path);
        if (place?.parent === parent) found.push({ path, index: place.index });
      }
      found.sort((a, b) => a.index - b.index);
      this.opened.set(parent, found);
    }
    return found;
  }

  private forget(): void {
    this.version += 1;
    this.sizes.clear();
    this.opened.clear();
  }

  private changed(): void {
    this.forget();
    for (const listener of this.listeners) listener();
  }
}
