import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import { sendUnlessUndone, toast, toastProblem } from "~/components/Toast";
import { text } from "~/texts/en";
import type { Job } from "./queries";

const named = (job: Job) => ({ params: { path: { reference: job.id } } });
const refresh = () => void queryClient.invalidateQueries();

export interface PauseWishes {
  reason?: string;
  until?: string;
}

/** What one can do with a recurring job. Pausing and resuming undo each other. */
export function useJobActions() {
  const navigate = useNavigate();
  const trigger = useMutation({
    mutationFn: (job: Job) => data(client.POST("/v1/jobs/{reference}/trigger", named(job))),
    onSuccess: ({ id }) => {
      toast({ message: text.jobs.triggered, action: { label: text.run.openIt, run: () => void navigate({ to: `/runs/${id}` as never }) } });
      refresh();
    },
    onError: toastProblem,
  });
  const resume = useMutation({
    mutationFn: (job: Job) => data(client.POST("/v1/jobs/{reference}/resume", named(job))),
    onSuccess: (_shown, job) => {
      const before: PauseWishes = { reason: job.paused_reason ?? undefined, until: job.paused_until ?? undefined };
      toast({ message: text.jobs.resumed(job.name), action: { label: text.undo, run: () => pause.mutate({ job, wishes: before, isUndo: true }) } });
      refresh();
    },
    onError: toastProblem,
  });
  const pause = useMutation({
    mutationFn: ({ job, wishes }: { job: Job; wishes: PauseWishes; isUndo?: boolean }) => data(client.POST("/v1/jobs/{reference}/pause", { ...named(job), body: wishes as never })),
    onSuccess: (_shown, { job, isUndo }) => {
      toast({ message: text.jobs.paused(job.name), ...(isUndo ? {} : { action: { label: text.undo, run: () => resume.mutate(job) } }) });
      refresh();
    },
  });
  const remove = (job: Job) => {
    sendUnlessUndone(
      text.jobs.deleting(job.name),
      async () => {
        await data(client.DELETE("/v1/jobs/{reference}", named(job)));
        refresh();
      },
      text.jobs.notDeleted(job.name),
    );
    void navigate({ to: "/jobs" as never });
  };
  return { trigger, pause, resume, remove };
}
