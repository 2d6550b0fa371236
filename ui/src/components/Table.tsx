/** A semantic table with a sticky head. `onOpen` makes a row clickable; give it a link too. */
import clsx from "clsx";
import type { ReactNode } from "react";

export interface Column<T> {
  key: string;
  head: ReactNode;
  /** Names a column whose head is empty. */
  label?: string;
  cell: (row: T) => ReactNode;
  /** Numbers stand at the right. */
  right?: boolean;
  className?: string;
}

export interface TableProps<T> {
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  /** Says what the table is, for those who cannot see it. */
  caption: string;
  onOpen?: (row: T) => void;
  /** The row that the keyboard is at. */
  active?: string | null;
  className?: string;
}

export function Table<T>({
  columns,
  rows,
  rowKey,
  caption,
  onOpen,
  active,
  className,
}: TableProps<T>) {
  return (
    <div
      tabIndex={0}
      role="region"
      aria-label={caption}
      className={clsx("min-w-0 overflow-auto rounded-lg border border-line bg-surface", className)}
    >
      <table className="w-full border-collapse text-[13px]">
        <caption className="sr-only">{caption}</caption>
        <thead className="sticky top-0 z-10 bg-surface">
          <tr>
            {columns.map((column) => (
              <th
                key={column.key}
                scope="col"
                aria-label={column.label}
                className={clsx(
                  "h-8 whitespace-nowrap border-b border-line px-3 text-left text-xs font-medium text-muted",
                  column.right && "!text-right",
                  column.className,
                )}
              >
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = rowKey(row);
            return (
              <tr
                key={key}
                data-row={key}
                data-active={active === key || undefined}
                onClick={onOpen && ((event) => opens(event) && onOpen(row))}
                className={clsx(
                  "border-b border-line last:border-0 hover:bg-sunken data-active:bg-accent-soft",
                  onOpen && "cursor-pointer",
                )}
              >
                {columns.map((column) => (
                  <td
                    key={column.key}
                    className={clsx(
                      "h-8 px-3 py-1 align-middle",
                      column.right && "text-right tabular-nums",
                      column.className,
                    )}
                  >
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** A click on a control in the row, or at the end of a selection of text, is not for the row. */
export function opens(event: React.MouseEvent): boolean {
  if (event.defaultPrevented || window.getSelection()?.toString()) return false;
  return !(event.target as HTMLElement).closest("a,button,input,select,textarea,label,summary");
}
