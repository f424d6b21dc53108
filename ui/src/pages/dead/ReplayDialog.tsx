import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { asApiError } from "~/api/problems";
import { key, queryClient } from "~/api/queries";
import type { DeadGroupDetails } from "~/api/schema";
import { AskDialog } from "~/components/Dialog";
import { Checkbox, TextArea, TextField } from "~/components/Field";
import { toast } from "~/components/Toast";
import { serverNow } from "~/model/clock";
import { parseRate, spread } from "~/model/replay";
import { words } from "~/texts/dead";
import { runQueryOf } from "../runs/queries";
import { objectIn } from "../runs/RerunDialog";
import { sendReplay } from "./queries";
import styles from "./dead.module.css";

/** Replays a group, or some of it. It counts first, and does not replay what fails after that. */
export function ReplayDialog({ group, ids, onClose }: { group: DeadGroupDetails; ids?: string[]; onClose: () => void }) {
  const [until] = useState(() => new Date(serverNow()).toISOString());
  const [isDismissedToo, setDismissedToo] = useState(false);
  const [isAgain, setAgain] = useState(false);
  const chosen = ids ? { ids, ...(isAgain ? { again: true } : {}) } : { filter: { group: group.fingerprint, until, dismissed: isDismissedToo } };
  const counted = useQuery({ queryKey: key("dead", "count", chosen), queryFn: () => sendReplay({ ...chosen, dry_run: true }), gcTime: 0, staleTime: Number.POSITIVE_INFINITY, placeholderData: (before) => before });
  const count = counted.data?.count ?? 0;
  const [isCanary, setCanary] = useState(true);
  const [rate, setRate] = useState("");
  const [payload, setPayload] = useState<string | null>(null);
  const [isKept, setKept] = useState(false);
  const sample = useQuery({ ...runQueryOf(group.sample_id), staleTime: 60_000 });
  const isOneFirst = isCanary && count > 1;
  const perSecond = parseRate(rate);
  const edited = payload === null ? undefined : objectIn(payload);
  const body = {
    ...chosen,
    ...(isOneFirst ? { canary: true } : {}),
    ...(perSecond ? { rate_per_second: perSecond } : {}),
    ...(edited ? { payload: edited as never } : {}),
    ...(isKept ? { keep_checkpoints: true } : {}),
  };
  const replay = useMutation({
    mutationFn: () => sendReplay(body),
    onSuccess: (answer) => {
      toast({ message: [answer.replay_id ? words.canaryStarted : words.replayed(answer.count), answer.skipped.length > 0 ? words.skipped(answer.skipped.length) : ""].join(" ").trim() });
      void queryClient.invalidateQueries();
      onClose();
    },
    onError: (error) => {
      if (asApiError(error).kind === "changed") void counted.refetch();
    },
  });
  const problem = replay.error ? asApiError(replay.error) : null;
  const isPayloadBad = payload !== null && !edited;
  const atPayload = problem?.field?.startsWith("payload") ? problem.detail : undefined;
  const blocked = counted.isLoading ? words.counting : count === 0 ? words.nothing : perSecond === undefined ? words.rateBad : isPayloadBad ? words.payloadInvalid : null;
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={() => replay.mutate()}
      title={counted.data ? words.replayTitle(count) : words.replayNow}
      confirm={counted.data && count > 0 ? words.confirm(count, isOneFirst) : words.replayNow}
      isBusy={replay.isPending}
      blocked={blocked}
      error={atPayload ? null : (problem ?? counted.error)}
    >
      <p>{words.replayHint}</p>
      {counted.data?.more && <p>{words.atMost(count)}</p>}
      {count > 1 && <Checkbox label={words.canary} hint={words.canaryHint} checked={isCanary} onChange={(event) => setCanary(event.target.checked)} />}
      {count > 1 && (
        <div className={styles.rate}>
          <TextField label={words.rate} isOptional inputMode="decimal" value={rate} hint={perSecond ? words.rateSpread(spread(count, perSecond)) : words.rateHint} error={perSecond === undefined ? words.rateBad : undefined} onChange={(event) => setRate(event.target.value)} />
        </div>
      )}
      <div className={styles.options}>
        <Checkbox label={words.otherPayload} hint={words.otherPayloadHint} checked={payload !== null} onChange={(event) => setPayload(event.target.checked ? JSON.stringify(sample.data?.payload ?? {}, null, 2) : null)} />
        {payload !== null && <TextArea label={words.payload} hint={words.payloadForAll(count)} error={isPayloadBad ? words.payloadInvalid : atPayload} isMono rows={7} value={payload} onChange={(event) => setPayload(event.target.value)} />}
        <Checkbox label={words.checkpoints} hint={words.checkpointsHint} checked={isKept} onChange={(event) => setKept(event.target.checked)} />
        {ids && (isAgain || (counted.data && count < ids.length)) && <Checkbox label={words.again} hint={words.againHint} checked={isAgain} onChange={(event) => setAgain(event.target.checked)} />}
        {!ids && group.dismissed_until && <Checkbox label={words.dismissedIncluded} checked={isDismissedToo} onChange={(event) => setDismissedToo(event.target.checked)} />}
      </div>
    </AskDialog>
  );
}
