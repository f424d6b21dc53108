import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { address } from "~/api/client";
import { currentNamespace } from "~/api/namespace";
import { ApiError, asApiError, problemOf } from "~/api/problems";
import { EmptyState } from "~/components/EmptyState";
import { ErrorNotice } from "~/components/ErrorNotice";
import { LogView } from "~/components/LogView";
import { Select } from "~/components/Field";
import { readEvents } from "~/live/sse";
import { LogLines } from "~/model/logLines";
import { ENDED } from "~/model/states";
import type { TimelineAttempt } from "~/model/timeline";
import { text } from "~/texts/en";
import type { WholeRun } from "./queries";

/** The output of an attempt. While the run goes on, one stream follows it, and only while the page is visible. */
export function RunLog({ run, attempts }: { run: WholeRun; attempts: readonly TimelineAttempt[] }) {
  const { attempt: asked, line } = useSearch({ strict: false }) as { attempt?: string; line?: string };
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const latest = Math.max(run.attempt, attempts.at(-1)?.attempt ?? 0);
  const attempt = Number(asked) || latest;
  const isEnded = ENDED.has(run.state);
  const isLive = !isEnded && attempt === latest;
  const { lines, version, error } = useLog(run.id, asked ? attempt : null, isLive);
  // A new version is a new text for the view, though the object is the same.
  const shown = useMemo(() => lines, [lines, version]);
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <LogView
        key={`${run.id} ${attempt}`}
        lines={shown}
        isLive={isLive}
        line={Number(line) || null}
        onLine={(number) => set({ line: String(number) })}
        downloadUrl={address(`/v1/runs/${run.id}/logs`, { attempt: latest > 0 ? attempt : undefined })}
        downloadName={`${run.name ?? run.task}-${run.id.slice(-8)}.log`}
        tools={
          latest > 1 ? (
            <Select
              aria-label={text.log.attempt}
              value={String(attempt)}
              onChange={(event) => set({ attempt: Number(event.target.value) === latest ? undefined : event.target.value, line: undefined })}
              options={Array.from({ length: latest }, (_, index) => ({ value: String(index + 1), label: text.run.timeline.attempt(index + 1) }))}
            />
          ) : undefined
        }
        empty={
          <EmptyState icon="runs" title={text.log.empty}>
            <p>{latest === 0 ? text.log.notStarted : isLive ? text.log.streaming : text.log.emptyHint}</p>
          </EmptyState>
        }
      />
    </>
  );
}

interface Log {
  lines: LogLines;
  version: number;
  error: unknown;
}

function useLog(id: string, attempt: number | null, isLive: boolean): Log {
  const [log, setLog] = useState<Log>(() => ({ lines: new LogLines(), version: 0, error: null }));
  useEffect(() => {
    const lines = new LogLines();
    let frame = 0;
    const stopped = new AbortController();
    // Thousands of pieces a second become one picture.
    const show = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setLog({ lines, version: lines.version, error: null });
      });
    };
    setLog({ lines, version: 0, error: null });
    const fail = (error: unknown) => {
      if (!stopped.signal.aborted && asApiError(error).kind !== "not_found") setLog((before) => ({ ...before, error }));
    };
    if (isLive) follow(id, lines, show, stopped.signal).catch(fail);
    else {
      fetchLog(id, attempt, stopped.signal)
        .then((words) => {
          lines.add(words);
          show();
        })
        .catch(fail);
    }
    return () => {
      stopped.abort();
      cancelAnimationFrame(frame);
    };
  }, [id, attempt, isLive]);
  return log;
}

async function fetchLog(id: string, attempt: number | null, signal: AbortSignal): Promise<string> {
  const namespace = currentNamespace();
  const url = address(`/v1/runs/${id}/logs`, { attempt: attempt ?? undefined });
  const answer = await fetch(url, { signal, headers: namespace ? { "Foliot-Namespace": namespace } : {} }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw ApiError.unreachable();
  });
  if (!answer.ok) throw problemOf(answer, await answer.json().catch(() => null));
  return answer.text();
}

/** Follows to the end of the run. A lost connection goes on after the last piece; a hidden page lets go. */
async function follow(id: string, lines: LogLines, show: () => void, signal: AbortSignal): Promise<void> {
  let last: string | undefined;
  let isOver = false;
  let wait = 500;
  while (!isOver && !signal.aborted) {
    await visible(signal);
    const mine = new AbortController();
    const stop = () => mine.abort();
    const onHidden = () => document.hidden && stop();
    signal.addEventListener("abort", stop);
    document.addEventListener("visibilitychange", onHidden);
    try {
      await readEvents(
        `/v1/runs/${id}/logs?follow=1`,
        ({ event, data, id: place }) => {
          if (place) last = place;
          wait = 500;
          if (event === "output") {
            lines.add((JSON.parse(data) as { text: string }).text);
            show();
          }
          if (event === "end") isOver = true;
        },
        mine.signal,
        last,
      );
    } catch (error) {
      if (signal.aborted) return;
      if (!mine.signal.aborted && !asApiError(error).isPassing) throw error;
    } finally {
      signal.removeEventListener("abort", stop);
      document.removeEventListener("visibilitychange", onHidden);
    }
    if (!isOver) await new Promise((resolve) => setTimeout(resolve, (wait = Math.min(wait * 2, 10_000))));
  }
}

function visible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) return resolve();
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}
