import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import { sendUnlessUndone, toast, toastProblem } from "~/components/Toast";
import { text } from "~/texts/en";
import { nameOfRun } from "./queries";

interface Target {
  id: string;
  name: string | null;
  task: string;
}

const refresh = () => void queryClient.invalidateQueries();

/** What one can do with a run. */
export function useRunActions() {
  const navigate = useNavigate();
  const open = (id: string) => void navigate({ to: `/runs/${id}` as never });
  const rerun = useMutation({
    mutationFn: ({ run, payload }: { run: Target; payload?: Record<string, unknown> }) =>
      data(client.POST("/v1/runs/{reference}/rerun", { params: { path: { reference: run.id } }, body: (payload ? { payload } : {}) as never })),
    onSuccess: (made) => {
      const id = (made as { id: string }).id;
      toast({ message: text.run.started, action: { label: text.run.openIt, run: () => open(id) } });
      refresh();
    },
    onError: toastProblem,
  });
  const stop = useMutation({
    mutationFn: (run: Target) => data(client.POST("/v1/runs/{reference}/cancel", { params: { path: { reference: run.id } }, body: { force: true } as never })),
    onSuccess: refresh,
    onError: toastProblem,
  });
  const cancel = (run: Target) =>
    sendUnlessUndone(
      text.run.cancelling(nameOfRun(run)),
      async () => {
        await data(client.POST("/v1/runs/{reference}/cancel", { params: { path: { reference: run.id } }, body: {} as never }));
        refresh();
      },
      text.run.notCancelled,
    );
  const openWorkflow = (id: string) => void navigate({ to: `/workflows/${id}` as never });
  const openFailures = (task: string) => void navigate({ to: "/dead" as never, search: { task } as never });
  const compare = (left: string, right: string) => void navigate({ to: "/runs/compare" as never, search: { left, right } as never });
  return { rerun, stop, cancel, open, openWorkflow, openFailures, compare };
}
