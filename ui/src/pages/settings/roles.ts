/** What each role may do. */
import type { Schemas } from "../../api/client";

export type Role = Schemas["TokenForm"]["role"];
export const ROLES: Record<Role, string> = {
  viewer: "sees runs and what they did",
  operator: "also retries, cancels and answers",
  developer: "also deploys and schedules",
  admin: "also makes tokens and reads the audit trail",
};
