/** Where this page is, with a way back to the list that it belongs to. */
import { Link, useLocation } from "@tanstack/react-router";
import clsx from "clsx";
import { ChevronRight } from "lucide-react";
import { Fragment } from "react";
import { shortId } from "../lib/format";
import { placeOf } from "./places";

interface Crumb {
  text: string;
  title?: string;
  /** A list between the place and this page. */
  to?: "/bulk";
}

/** What is behind the name of the place: `/flows/default/ns.Flow` has two parts. */
function behind(path: string): Crumb[] {
  const [, first, ...rest] = path.split("/").map(decodeURIComponent);
  const parts = rest.filter(Boolean);
  if (first === "flows") return parts.map((part) => ({ text: part }));
  const [id] = parts;
  const lists: Crumb[] = first === "bulk" ? [{ text: "Bulk actions", to: "/bulk" }] : [];
  if (!id) return lists;
  return [...lists, { text: (first === "turns" ? "Turn " : "") + shortId(id), title: id }];
}

export function Crumbs() {
  const { pathname } = useLocation();
  const place = placeOf(pathname);
  if (!place) return <div className="flex-1" />;
  const parts = behind(pathname);
  return (
    <nav aria-label="Breadcrumb" className="min-w-0 flex-1">
      <ol className="flex min-w-0 items-center gap-1 text-[13px]">
        <li className="shrink-0">
          {parts.length > 0 ? (
            <Link to={place.to} className="rounded text-muted hover:text-text hover:underline">
              {place.name}
            </Link>
          ) : (
            <span aria-current="page" className="font-medium">
              {place.name}
            </span>
          )}
        </li>
        {parts.map((part, index) => (
          <Fragment key={index}>
            <li aria-hidden className="text-faint">
              <ChevronRight size={14} />
            </li>
            <li
              title={part.title}
              aria-current={index === parts.length - 1 ? "page" : undefined}
              className={
                index === parts.length - 1
                  ? clsx("min-w-0 truncate", part.to ? "font-medium" : "font-mono text-xs")
                  : clsx("shrink-0 text-muted", !part.to && "font-mono text-xs")
              }
            >
              {part.to && index < parts.length - 1 ? (
                <Link to={part.to} className="rounded hover:text-text hover:underline">
                  {part.text}
                </Link>
              ) : (
                part.text
              )}
            </li>
          </Fragment>
        ))}
      </ol>
    </nav>
  );
}
