/**
 * The rows right below one parent, or those that match a filter: a sparse set of the windows that
 * were read. Where the server knows the total, windows are read by number, so that the reader may
 * jump to the end of a hundred thousand; elsewhere one window is read behind the other.
 */
import type { Row, RowPage } from "../queries";

export const WINDOW = 200;

export interface RowQuery {
  /** absent for a filter, which looks everywhere in the run */
  parent?: string;
  state?: string[];
  facet?: string;
  text?: string;
  statement?: string;
}

export interface WindowPlace {
  offset?: number;
  cursor?: string;
}

interface Window {
  rows: Row[];
  /** the mark of the run when it was asked for; another one makes the window stale */
  mark: string | null;
  loading: boolean;
  cursor?: string;
}

const EMPTY: Window = { rows: [], mark: null, loading: false };

export class Level {
  total: number | null = null;
  private windows: (Window | undefined)[] = [];
  private sparse = new Map<number, Row>();
  /** whether the last window that is known has nothing behind it */
  private ended = false;

  constructor(readonly query: RowQuery) {}

  /** How many rows to draw: one more than is known while there is more to read. */
  get count(): number {
    if (this.total !== null) return this.total;
    return this.read + (this.ended ? 0 : 1);
  }

  get known(): boolean {
    return this.windows[0]?.mark != null;
  }

  row(index: number): Row | undefined {
    if (this.total !== null) return this.sparse.get(index);
    let left = index;
    for (const window of this.windows) {
      if (window === undefined || left < window.rows.length) return window?.rows[left];
      left -= window.rows.length;
    }
    return undefined;
  }

  /** Every row that was read, with its place. */
  *entries(): Iterable<[number, Row]> {
    if (this.total !== null) {
      yield* this.sparse;
      return;
    }
    let at = 0;
    for (const window of this.windows) for (const row of window?.rows ?? []) yield [at++, row];
  }

  windowOf(index: number): number {
    if (this.total !== null) return Math.floor(index / WINDOW);
    let left = index;
    let at = 0;
    for (const window of this.windows) {
      if (window === undefined || window.mark === null || left < window.rows.length) return at;
      left -= window.rows.length;
      at += 1;
    }
    return at;
  }

  needs(window: number, mark: string): boolean {
    const known = this.windows[window];
    if (known?.loading) return false;
    if (known === undefined) return this.total !== null || !this.ended || window === 0;
    return known.mark !== mark;
  }

  begin(window: number): WindowPlace {
    const known = this.windows[window] ?? EMPTY;
    this.windows[window] = { ...known, loading: true };
    if (this.total !== null) return { offset: window * WINDOW };
    return { cursor: known.cursor };
  }

  /** A window that could not be read is not asked for again until something has changed. */
  fail(window: number, mark: string): void {
    this.windows[window] = { ...(this.windows[window] ?? EMPTY), mark, loading: false };
  }

  take(window: number, page: RowPage, mark: string): void {
    const rows = page.items;
    const cursor = this.windows[window]?.cursor;
    if (this.query.parent !== undefined && page.total !== null) {
      this.total = page.total;
      this.place(window * WINDOW, rows);
      this.windows[window] = { rows: [], mark, loading: false, cursor };
      return;
    }
    this.windows[window] = { rows, mark, loading: false, cursor };
    if (page.next === null) {
      this.ended = true;
      this.windows.length = window + 1;
    } else {
      const behind = this.windows[window + 1] ?? EMPTY;
      const moved = behind.cursor !== page.next;
      this.windows[window + 1] = { ...behind, cursor: page.next, mark: moved ? null : behind.mark };
      if (this.windows.length === window + 2) this.ended = false;
    }
  }

  private get read(): number {
    return this.windows.reduce((sum, window) => sum + (window?.rows.length ?? 0), 0);
  }

  /** The number of an iteration is its place, also where some are not there yet. */
  private place(base: number, rows: Row[]): void {
    for (let at = base; at < base + WINDOW; at++) this.sparse.delete(at);
    rows.forEach((row, at) => {
      const last = row.path.slice(row.path.lastIndexOf("/") + 1);
      const number = /^\d+$/.test(last) ? Number(last) : base + at;
      this.sparse.set(number < (this.total ?? 0) ? number : base + at, row);
    });
  }
}
