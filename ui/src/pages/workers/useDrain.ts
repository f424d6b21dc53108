import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import { sendUnlessUndone } from "~/components/Toast";
import { words } from "~/texts/workers";
import { curl } from "../runs/commands";
import type { Worker } from "./queries";

/** Draining cannot be taken back, so it is sent after a moment in which it can be undone. */
export function drain(worker: Worker): void {
  sendUnlessUndone(
    words.draining(worker.name),
    async () => {
      await data(client.POST("/v1/workers/{reference}/drain", { params: { path: { reference: worker.id } } }));
      void queryClient.invalidateQueries();
    },
    words.notDrained(worker.name),
  );
}

export const drainCommands = (worker: Worker) => [
  { label: "foliot", command: `foliot workers drain ${worker.id}` },
  { label: "curl", command: curl("POST", `/v1/workers/${worker.id}/drain`) },
];
