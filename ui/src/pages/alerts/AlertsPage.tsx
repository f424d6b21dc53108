import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { AlertShown } from "~/api/schema";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { Icon, type IconName } from "~/components/Icon";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { words } from "~/texts/alerts";
import { AcknowledgeDialog } from "./AcknowledgeDialog";
import { Channels } from "./Channels";
import { alertsQuery } from "./queries";
import { Rules } from "./Rules";
import { SilenceDialog } from "./SilenceDialog";
import { Silences } from "./Silences";
import styles from "./AlertsPage.module.css";

const ICONS: Record<string, IconName> = { critical: "warning", warning: "warning", info: "info" };
const SUBJECTS_SHOWN = 5;

interface Asked {
  alert: AlertShown;
  action: "acknowledge" | "silence";
}

export function AlertsPage() {
  const found = useQuery(alertsQuery());
  useLiveRefresh(() => void found.refetch());
  const [asked, setAsked] = useState<Asked | null>(null);
  const mayOperate = useMay("operate");
  const close = () => setAsked(null);
  if (found.error && !found.data) return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  const items = found.data?.items ?? [];
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} />
      {!found.data ? (
        <Skeleton lines={5} />
      ) : items.length === 0 ? (
        <EmptyState icon="check" title={words.emptyTitle}>
          <p>{words.emptyHint}</p>
        </EmptyState>
      ) : (
        <ul className={styles.list} aria-label={words.title}>
          {items.map((alert) => (
            <Alert key={alert.id} alert={alert} mayChange={mayOperate} onAsk={(action) => setAsked({ alert, action })} />
          ))}
        </ul>
      )}
      <Silences mayChange={mayOperate} />
      <Rules />
      <Channels mayTest={mayOperate} />
      {asked?.action === "acknowledge" && <AcknowledgeDialog alert={asked.alert} onClose={close} />}
      {asked?.action === "silence" && <SilenceDialog alert={asked.alert} onClose={close} />}
    </>
  );
}

function Alert({ alert, mayChange, onAsk }: { alert: AlertShown; mayChange: boolean; onAsk: (action: Asked["action"]) => void }) {
  const isPending = alert.state === "pending";
  const shown = alert.subjects.slice(0, SUBJECTS_SHOWN);
  const rest = Math.max(alert.number, alert.subjects.length) - shown.length;
  const about = [...shown, ...(rest > 0 && shown.length > 0 ? [words.more(rest)] : [])].join(", ");
  return (
    <li className={styles.row} data-severity={isPending ? "pending" : alert.severity}>
      <span className={styles.mark}>
        <Icon name={isPending ? "clock" : (ICONS[alert.severity] ?? "warning")} size={18} />
      </span>
      <div className={styles.what}>
        <h2 className={styles.title}>
          {alert.title}
          <span className={styles.kind}>{isPending ? <Explained text={words.pendingHint}>{words.pending}</Explained> : (words.severities[alert.severity] ?? alert.severity)}</span>
        </h2>
        <p className={styles.reason}>{alert.summary}</p>
        {alert.acknowledged_at && (
          <p className={styles.taken}>
            <Icon name="user" size={14} />
            <span>{words.acknowledged(alert.acknowledged_by ?? "") + (alert.note ? `: ${alert.note}` : "")}</span>
          </p>
        )}
        {alert.log_tail && (
          <details className={styles.log}>
            <summary>{words.log}</summary>
            <pre tabIndex={0} aria-label={words.log}>{alert.log_tail}</pre>
          </details>
        )}
      </div>
      <Facts
        items={[
          [words.since, <Time key="s" at={alert.since} isFocusable />],
          about !== "" && [words.about, about],
          [words.rule, alert.rule],
          [words.told, words.toldTimes(alert.messages)],
        ]}
      />
      {mayChange && (
        <div className={styles.actions}>
          {!isPending && !alert.acknowledged_at && (
            <Button size="small" icon="check" aria-label={words.acknowledgeNamed(alert.title)} onClick={() => onAsk("acknowledge")}>
              {words.acknowledge}
            </Button>
          )}
          <Button size="small" icon="pause" aria-label={words.silenceNamed(alert.title)} onClick={() => onAsk("silence")}>
            {words.silence}
          </Button>
        </div>
      )}
    </li>
  );
}
