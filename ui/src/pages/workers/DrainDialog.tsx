import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { key, queryClient } from "~/api/queries";
import { CopyCommand } from "~/components/Copy";
import { AskDialog } from "~/components/Dialog";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Checkbox } from "~/components/Field";
import { toast } from "~/components/Toast";
import { labelCounts } from "~/model/slots";
import { words } from "~/texts/workers";
import { curl } from "../runs/commands";
import type { Worker } from "./queries";
import styles from "./workers.module.css";

const SHOWN = 10;

/** Drains all workers with some labels, after a look at which these are. */
export function DrainDialog({ workers, onClose }: { workers: readonly Worker[]; onClose: () => void }) {
  const [chosen, setChosen] = useState<Record<string, string>>({});
  const isAsked = Object.keys(chosen).length > 0;
  const ask = (isTry: boolean) => data(client.POST("/v1/workers/drain", { body: { labels: chosen, dry_run: isTry } }));
  const tried = useQuery({ queryKey: key("drain", chosen), queryFn: () => ask(true), enabled: isAsked, staleTime: 0, placeholderData: (before) => before });
  const drain = useMutation({
    mutationFn: () => ask(false),
    onSuccess: ({ items }) => {
      toast({ message: words.drained(items.length) });
      void queryClient.invalidateQueries();
      onClose();
    },
  });
  const found = isAsked ? (tried.data?.items ?? []) : [];
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={() => drain.mutate()}
      title={words.drainTitle}
      confirm={isAsked && found.length > 0 ? words.drainCount(found.length) : words.drain}
      isDangerous
      isBusy={drain.isPending}
      blocked={!isAsked ? words.chooseFirst : found.length === 0 ? words.wouldDrain(0, workers.length) : null}
      error={drain.error}
    >
      <p>{words.drainHint}</p>
      <fieldset className={styles.choices}>
        <legend>{words.chooseLabels}</legend>
        {labelCounts(workers).map(({ name, value, count }) => (
          <Checkbox
            key={`${name}=${value}`}
            label={
              <>
                <span className="mono">{`${name}=${value}`}</span> <span className="quiet">{words.labelCount(count)}</span>
              </>
            }
            checked={chosen[name] === value}
            onChange={(event) => {
              const { [name]: _, ...others } = chosen;
              setChosen(event.target.checked ? { ...others, [name]: value } : others);
            }}
          />
        ))}
      </fieldset>
      {tried.error ? <ErrorNotice error={tried.error} /> : null}
      {isAsked && tried.data && (
        <div className={styles.found} role="status">
          <p>{words.wouldDrain(found.length, workers.length)}</p>
          {found.length > 0 && (
            <ul>
              {found.slice(0, SHOWN).map((worker) => (
                <li key={worker.id}>{worker.name}</li>
              ))}
              {found.length > SHOWN && <li>{words.andMore(found.length - SHOWN)}</li>}
            </ul>
          )}
        </div>
      )}
      {isAsked && <CopyCommand commands={[{ label: "curl", command: curl("POST", "/v1/workers/drain", { labels: chosen }) }]} />}
    </AskDialog>
  );
}
