import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { QueueKeysShown } from "~/api/schema";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Panel } from "~/components/Panel";
import { Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { percent } from "~/model/numbers";
import { shares } from "~/model/queues";
import { duration } from "~/model/times";
import { words } from "~/texts/queues";
import { keysQuery } from "./queries";
import styles from "./queues.module.css";

/** The keys of limits and turns that the runs of a queue share. Most queues have none. */
export function Keys({ queue }: { queue: string }) {
  const found = useQuery(keysQuery(queue));
  useLiveRefresh(() => void found.refetch(), { every: 2_000 });
  if (!found.error && !(found.data && hasKeys(found.data))) return null;
  return (
    <Panel className={styles.part} title={words.keys} hint={words.keysHint} isFlush>
      {found.data ? <Lists found={found.data} /> : <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />}
    </Panel>
  );
}

const hasKeys = ({ concurrency, rate, fairness }: QueueKeysShown) => concurrency.length + rate.length + fairness.length > 0;

function Lists({ found }: { found: QueueKeysShown }) {
  const { concurrency, rate, fairness, counts_stop_at: most } = found;
  const parts = shares(fairness);
  return (
    <div className={styles.keys}>
      <KeyList title={words.concurrency} hint={words.concurrencyHint}>
        {concurrency.map((one) => (
          <KeyRow key={one.key} name={one.key} part={one.taken / one.limit} label={words.use(words.of(one.taken, one.limit))} used={words.of(one.taken, one.limit)} note={words.waiting(one.waiting, most)} isTight={one.waiting > 0 && one.taken >= one.limit} />
        ))}
      </KeyList>
      <KeyList title={words.rate} hint={words.rateHint}>
        {rate.map((one) => (
          <KeyRow
            key={one.key}
            name={one.key}
            part={one.started / one.limit}
            label={words.use(words.of(one.started, one.limit))}
            used={`${words.of(one.started, one.limit)} / ${duration(one.period_seconds)}`}
            note={
              <>
                {words.waiting(one.waiting, most)}
                {one.free_at && one.started >= one.limit && (
                  <>
                    {`, ${words.nextFree} `}
                    <Time at={one.free_at} />
                  </>
                )}
              </>
            }
            isTight={one.waiting > 0 && one.started >= one.limit}
          />
        ))}
      </KeyList>
      <KeyList title={words.fairness} hint={words.fairnessHint}>
        {fairness.map((one, index) => (
          <KeyRow key={one.key} name={one.key} part={parts[index] ?? 0} label={words.share(percent(parts[index] ?? 0))} used={words.runningCount(one.running)} note={words.waiting(one.waiting, most)} />
        ))}
      </KeyList>
    </div>
  );
}

function KeyList({ title, hint, children }: { title: string; hint: string; children: ReactNode[] }) {
  if (children.length === 0) return null;
  return (
    <section className={styles.keyList} aria-label={title}>
      <h3>{title}</h3>
      <p>{hint}</p>
      <ul>{children}</ul>
    </section>
  );
}

function KeyRow({ name, part, label, used, note, isTight }: { name: string; part: number; label: string; used: string; note: ReactNode; isTight?: boolean }) {
  return (
    <li>
      <bdi className={styles.key}>{name}</bdi>
      <span className={styles.meter} role="img" aria-label={label} data-tight={isTight || undefined}>
        <span style={{ inlineSize: `${Math.min(1, part) * 100}%` }} />
      </span>
      <span className={styles.used}>{used}</span>
      <span className={styles.keyNote}>{note}</span>
    </li>
  );
}
