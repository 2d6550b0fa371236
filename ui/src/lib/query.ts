/** Reading from the API. The first element of every key is the topic that tells of changes. */
import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { type ApiError, unwrap } from "../api/client";

export type ApiAnswer<T> = Promise<{ data?: T; error?: unknown; response: Response }>;

export interface ApiOptions<T> {
  enabled?: boolean;
  /** Shows what was there until the new answer comes, for lists whose filter changes. */
  keep?: boolean;
  /** In milliseconds, for what no topic tells of; by what is known so far, if it comes to an end. */
  every?: number | false | ((data: T | undefined) => number | false);
}

/** `useApi(["run:" + id], (signal) => api.GET("/api/v1/runs/{run}", {params, signal}))` */
export function useApi<T>(
  key: readonly unknown[],
  ask: (signal: AbortSignal) => ApiAnswer<T>,
  options: ApiOptions<T> = {},
): UseQueryResult<T, ApiError> {
  return useQuery<T, ApiError>({
    queryKey: key,
    queryFn: ({ signal }) => unwrap(ask(signal)),
    enabled: options.enabled ?? true,
    refetchInterval: ({ state }) =>
      typeof options.every === "function" ? options.every(state.data) : (options.every ?? false),
    ...(options.keep ? { placeholderData: keepPreviousData } : {}),
  });
}
