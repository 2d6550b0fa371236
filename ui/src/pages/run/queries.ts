/** What a run page asks the server for. Every key begins with the live topic of the run. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "../../api/client";

export type Run = Schemas["RunView"];
export type RunLine = Schemas["RunLine"];
export type Row = Schemas["StepRow"];
export type RowPage = Schemas["RowPage"];
export type Summary = Schemas["RunSummary"];
export type Graph = Schemas["GraphView"];
export type Step = Schemas["StepView"];
export type Why = Schemas["WhyView"];
export type LogLine = Schemas["LogLineView"];
export type LogPage = Schemas["LogPage"];
export type Turn = Schemas["TurnLine"];
export type Transcript = Schemas["TranscriptView"];
export type Program = Schemas["ProgramView"];

export const topic = (run: string) => `run:${run}`;
export const at = (run: string) => ({ params: { path: { run } } });

export function useRun(run: string) {
  return useQuery({
    queryKey: [topic(run), "run"],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{run}", at(run))),
  });
}

export function useSummary(run: string) {
  return useQuery({
    queryKey: [topic(run), "summary"],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{run}/summary", at(run))),
  });
}

export function useGraph(run: string | undefined) {
  return useQuery({
    queryKey: [topic(run ?? ""), "graph"],
    enabled: run !== undefined,
    queryFn: () => unwrap(api.GET("/api/v1/runs/{run}/graph", at(run ?? ""))),
  });
}

export function useLineage(run: string) {
  return useQuery({
    queryKey: [topic(run), "lineage"],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{run}/lineage", at(run))),
  });
}

export function useStep(run: string, path: string | undefined) {
  return useQuery({
    queryKey: [topic(run), "step", path],
    enabled: path !== undefined,
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/runs/{run}/step", {
          params: { path: { run }, query: { path: path ?? "" } },
        }),
      ),
    // the panel keeps its place while the next step is read
    placeholderData: keepPreviousData,
  });
}

export function useTurns(run: string) {
  return useQuery({
    queryKey: [topic(run), "turns"],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{run}/turns", at(run))),
  });
}

/** A program never changes: its hash is its name. */
export function useProgram(program: string | undefined) {
  return useQuery({
    queryKey: ["program", program],
    enabled: program !== undefined,
    staleTime: Infinity,
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/programs/{program}", { params: { path: { program: program ?? "" } } }),
      ),
  });
}
