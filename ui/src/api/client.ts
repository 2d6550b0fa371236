/** The typed client: paths, parameters and answers are those of the OpenAPI document. */
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";
import { CSRF_HEADER, session } from "./session";

export type Schemas = components["schemas"];
/** What the server says when it refuses (RFC 9457). */
export type Problem = Schemas["Problem"];

const TOKEN = "afl.token";

export const token = {
  get: () => localStorage.getItem(TOKEN),
  set: (value: string | null) =>
    value ? localStorage.setItem(TOKEN, value) : localStorage.removeItem(TOKEN),
};

export const api = createClient<paths>({ baseUrl: "" });

api.use({
  onRequest({ request }) {
    const value = token.get();
    const csrf = session.csrf();
    if (value) request.headers.set("Authorization", `Bearer ${value}`);
    else if (csrf && request.method !== "GET") request.headers.set(CSRF_HEADER, csrf);
    return request;
  },
});

/** What the server refused, or that it cannot be reached: never the same thing on a page. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem | null,
  ) {
    super(problem?.detail ?? "The server cannot be reached.");
  }
  get forbidden() {
    return this.status === 401 || this.status === 403;
  }
  get unreachable() {
    return this.status === 0;
  }
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The data of an answer; anything else is thrown as an ApiError. */
export async function unwrap<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch {
    throw new ApiError(0, null);
  }
  if (answer.error !== undefined || !answer.response.ok) {
    throw new ApiError(answer.response.status, (answer.error as Problem) ?? null);
  }
  return answer.data as T;
}
