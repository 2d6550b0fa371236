/** Where this page is, with a way back to the list that it belongs to. */
import { Link, useLocation } from "@tanstack/react-router";
import { ChevronRight } from "lucide-react";
import { Fragment } from "react";
import { shortId } from "../lib/format";
import { placeOf } from "./places";

interface Crumb {
  text: string;
  title?: string;
}

/** What is behind the name of the place: `/flows/default/ns.Flow` has two parts. */
function behind(path: string): Crumb[] {
  const [, first, ...rest] = path.split("/").map(decodeURIComponent);
  const parts = rest.filter(Boolean);
  if (first === "flows") return parts.map((part) => ({ text: part }));
  const [id] = parts;
  if (!id) return [];
  const kind = first === "bulk" ? "Job " : first === "turns" ? "Turn " : "";
  return [{ text: kind + shortId(id), title: id }];
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
                  ? "min-w-0 truncate font-mono text-xs"
                  : "shrink-0 font-mono text-xs text-muted"
              }
            >
              {part.text}
            </li>
          </Fragment>
        ))}
      </ol>
    </nav>
  );
}
