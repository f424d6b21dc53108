import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { PREFIX } from "~/api/client";
import { currentNamespace } from "~/api/namespace";
import { ApiError, asApiError, problemOf } from "~/api/problems";
import { key } from "~/api/queries";
import { AskDialog } from "~/components/Dialog";
import { TextField } from "~/components/Field";
import { Skeleton } from "~/components/Skeleton";
import { StateBadge } from "~/components/StateBadge";
import { toast } from "~/components/Toast";
import { number } from "~/model/numbers";
import type { RunQuery } from "~/model/runFilter";
import { text } from "~/texts/en";
import { nameOfRun, type Run } from "./queries";
import styles from "./BulkDialog.module.css";

export interface Bulk {
  action: "cancel" | "rerun";
  ids?: string[];
  filter?: RunQuery;
  /** The filter as the user wrote it. */
  words?: string;
}

interface Answer {
  count: number;
  sample: (Run | string)[];
  more: boolean;
  next: string | null;
  until: string;
}

/** Above this number, it is typed before it is done. */
const TYPED_ABOVE = 1_000;

async function send(action: string, body: object): Promise<Answer> {
  const namespace = currentNamespace();
  const answer = await fetch(`${PREFIX}/v1/runs/${action}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Foliot-CSRF": "1", ...(namespace ? { "Foliot-Namespace": namespace } : {}) },
    body: JSON.stringify(body),
  }).catch(() => {
    throw ApiError.unreachable();
  });
  const told: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw problemOf(answer, told);
  return told as Answer;
}

/** Counts first, shows examples, and does not do more than it has counted. */
export function BulkDialog({ bulk, onClose, onDone }: { bulk: Bulk; onClose: () => void; onDone: () => void }) {
  const selected = bulk.ids ? { ids: bulk.ids } : { ...bulk.filter };
  const counted = useQuery({ queryKey: key("bulk", bulk), queryFn: () => send(bulk.action, { ...selected, dry_run: true }), gcTime: 0, staleTime: Number.POSITIVE_INFINITY });
  const [typed, setTyped] = useState("");
  const [done, setDone] = useState(0);
  const count = counted.data?.count ?? 0;
  const run = useMutation({
    mutationFn: async () => {
      if (bulk.ids) {
        const answer = await send(bulk.action, selected);
        return answer.count;
      }
      let after: string | null = null;
      let sum = 0;
      let expected = count;
      do {
        const answer: Answer = await send(bulk.action, { ...selected, until: counted.data?.until, expected, ...(after ? { after } : {}) });
        sum += answer.count;
        expected = Math.max(0, expected - answer.count);
        after = answer.next;
        setDone(sum);
      } while (after && sum < count);
      return sum;
    },
    onSuccess: (sum) => {
      toast({ message: bulk.action === "cancel" ? text.runs.cancelled(sum) : text.runs.rerunDone(sum) });
      onDone();
    },
    onError: (error) => {
      if (asApiError(error).kind === "changed") void counted.refetch();
    },
  });
  const isTyped = count <= TYPED_ABOVE || typed.replace(/\D/g, "") === String(count);
  const problem = run.error ?? counted.error;
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={() => run.mutate()}
      title={bulk.action === "cancel" ? text.bulk.cancelTitle : text.bulk.rerunTitle}
      confirm={run.isPending ? text.bulk.progress(done, count) : bulk.action === "cancel" ? text.bulk.cancelCount(count, counted.data?.more ?? false) : text.bulk.rerunCount(count, counted.data?.more ?? false)}
      isDangerous={bulk.action === "cancel"}
      isBusy={run.isPending || counted.isLoading}
      blocked={count === 0 && !counted.isLoading ? text.bulk.nothing : isTyped ? null : text.bulk.typeFirst(count)}
      error={problem}
    >
      {counted.isLoading ? (
        <Skeleton lines={3} />
      ) : (
        counted.data && (
          <>
            <p>{bulk.ids ? text.bulk.ofSelected(count, bulk.ids.length) : text.bulk.ofFilter(count, counted.data.more, bulk.words ?? "")}</p>
            {count > 0 && bulk.action === "cancel" && <p>{text.bulk.cancelHint}</p>}
            <ul className={styles.examples}>
              {counted.data.sample.slice(0, 10).map((one) =>
                typeof one === "string" ? (
                  <li key={one} className="mono">
                    {one}
                  </li>
                ) : (
                  <li key={one.id}>
                    <StateBadge state={one.state} isQuiet explain={false} />
                    <span className="truncate">{nameOfRun(one)}</span>
                  </li>
                ),
              )}
            </ul>
            {count > TYPED_ABOVE && <TextField label={text.bulk.typeLabel(count)} inputMode="numeric" value={typed} onChange={(event) => setTyped(event.target.value)} placeholder={number(count)} />}
          </>
        )
      )}
    </AskDialog>
  );
}
