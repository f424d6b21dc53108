import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import { Button } from "~/components/Button";
import { AskDialog } from "~/components/Dialog";
import { TextField } from "~/components/Field";
import { toast } from "~/components/Toast";
import { number } from "~/model/numbers";
import { text } from "~/texts/en";
import { words } from "~/texts/queues";
import { limitsQuery, sendLimits } from "./queries";
import styles from "./queues.module.css";

const isGood = (typed: string) => typed.trim() === "" || /^[1-9]\d{0,8}$/.test(typed.trim());
const limitIn = (typed: string) => (typed.trim() === "" ? null : Number(typed));
const told = (limit: number | null) => (limit === null ? words.noLimit : number(limit));

/** Changes the limits only if nobody else has since they were read. What was typed stays, whoever was first. */
export function LimitsDialog({ queue, onClose }: { queue: string; onClose: () => void }) {
  const limits = useQuery(limitsQuery(queue));
  const stored = limits.data?.data;
  const [typed, setTyped] = useState<{ running?: string; depth?: string }>({});
  const [isOvertaken, setOvertaken] = useState(false);
  const running = typed.running ?? String(stored?.max_running ?? "");
  const depth = typed.depth ?? String(stored?.max_depth ?? "");
  const save = useMutation({
    mutationFn: () => sendLimits(queue, { max_running: limitIn(running), max_depth: limitIn(depth) }, limits.data?.etag ?? null),
    onSuccess: () => {
      toast({ message: words.limitsSaved });
      void queryClient.invalidateQueries();
      onClose();
    },
    onError: (error) => {
      if (asApiError(error).status !== 412) return;
      // Both are kept as they are seen, also the one that nobody has typed into.
      setTyped({ running, depth });
      setOvertaken(true);
      void limits.refetch();
    },
  });
  const problem = save.error ? asApiError(save.error) : null;
  const isAtField = problem?.field === "max_running" || problem?.field === "max_depth";
  const atField = (name: string, value: string) => (isGood(value) ? (problem?.field === name ? problem.detail : undefined) : words.numberWanted);
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={() => save.mutate()}
      title={words.limitsTitle(queue)}
      confirm={isOvertaken ? words.saveAnyway : text.save}
      isBusy={save.isPending || limits.isFetching}
      blocked={isGood(running) && isGood(depth) ? null : words.numberWanted}
      error={limits.error ?? (problem && problem.status !== 412 && !isAtField ? problem : null)}
    >
      <p>{words.limitsHint}</p>
      {isOvertaken && stored && (
        <div className={styles.overtaken} role="alert">
          <p>
            <strong>{words.changedMeanwhile}</strong> {words.nowAre(told(stored.max_running), told(stored.max_depth))}
          </p>
          <Button
            size="small"
            onClick={() => {
              setTyped({});
              setOvertaken(false);
            }}
          >
            {words.takeTheirs}
          </Button>
        </div>
      )}
      <TextField label={words.maxRunning} hint={words.maxRunningHint} inputMode="numeric" autoFocus value={running} error={atField("max_running", running)} onChange={(event) => setTyped({ ...typed, running: event.target.value })} />
      <TextField label={words.maxDepth} hint={words.maxDepthHint} inputMode="numeric" value={depth} error={atField("max_depth", depth)} onChange={(event) => setTyped({ ...typed, depth: event.target.value })} />
    </AskDialog>
  );
}
