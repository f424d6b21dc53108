import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { key, queryClient } from "~/api/queries";
import { AskDialog } from "~/components/Dialog";
import { SelectField, TextField } from "~/components/Field";
import { Time } from "~/components/Time";
import { toast } from "~/components/Toast";
import { serverNow } from "~/model/clock";
import { number } from "~/model/numbers";
import { browserZone, millis, zoneLabel } from "~/model/times";
import { text } from "~/texts/en";
import { type Job, zoneOf } from "./queries";
import styles from "./BackfillDialog.module.css";

const { backfilling: words } = text.jobs;
const DAY = 86_400_000;
const SHOWN = 10;
const MINUTE = 60_000;

/** What a picker for local time shows. It and what it means are in the browser's zone. */
function local(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Runs past ticks that have not run. It says which before it does. */
export function BackfillDialog({ job, range, onClose }: { job: Job; range?: { from: number; to: number }; onClose: () => void }) {
  const [from, setFrom] = useState(() => local(range?.from ?? serverNow() - DAY));
  // Pickers show minutes: the last one is in it.
  const [to, setTo] = useState(() => local(range ? Math.floor(range.to / MINUTE) * MINUTE + MINUTE : serverNow()));
  const [overlap, setOverlap] = useState("buffer_all");
  const [begin, end] = [millis(from), millis(to)];
  const isRange = Number.isFinite(begin) && Number.isFinite(end) && begin < end;
  const body = { from: isRange ? new Date(begin).toISOString() : "", to: isRange ? new Date(end).toISOString() : "", overlap };
  const ask = (isDry: boolean) =>
    data(client.POST("/v1/jobs/{reference}/backfill", { params: { path: { reference: job.id } }, body: { ...body, dry_run: isDry } as never }));
  const preview = useQuery({ queryKey: key("backfill", job.id, body), queryFn: () => ask(true), enabled: isRange, gcTime: 0, retry: false });
  const run = useMutation({
    mutationFn: () => ask(false),
    onSuccess: ({ ticks }) => {
      toast({ message: words.done(ticks.length) });
      void queryClient.invalidateQueries();
      onClose();
    },
  });
  const ticks = (preview.data?.ticks ?? []) as unknown[];
  const instants = ticks.map((tick) => (typeof tick === "string" ? tick : ((tick as { tick_at?: string; at?: string }).tick_at ?? (tick as { at?: string }).at ?? "")));
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={() => run.mutate()}
      title={words.title(job.name)}
      confirm={words.confirm(instants.length)}
      isBusy={run.isPending || preview.isLoading}
      blocked={!isRange ? words.badRange : instants.length === 0 ? words.nothing : null}
      error={run.error ?? preview.error}
    >
      <div className={styles.range}>
        <TextField label={words.from} type="datetime-local" value={from} onChange={(event) => setFrom(event.target.value)} error={isRange ? undefined : words.badRange} />
        <TextField label={words.to} type="datetime-local" value={to} onChange={(event) => setTo(event.target.value)} />
      </div>
      <p className={styles.zone}>{words.zone(zoneLabel(browserZone(), serverNow()))}</p>
      <SelectField
        label={words.order}
        value={overlap}
        onChange={(event) => setOverlap(event.target.value)}
        options={[
          { value: "buffer_all", label: words.oneByOne },
          { value: "allow_all", label: words.allAtOnce },
        ]}
      />
      {preview.data && (
        <div className={styles.preview}>
          <p>{words.found(instants.length, preview.data.already_run)}</p>
          <ul>
            {instants.slice(0, SHOWN).map((at) => (
              <li key={at}>
                <Time at={at} form="absolute" jobZone={zoneOf(job)} />
              </li>
            ))}
            {instants.length > SHOWN && <li className="quiet">{words.more(number(instants.length - SHOWN))}</li>}
          </ul>
        </div>
      )}
    </AskDialog>
  );
}
