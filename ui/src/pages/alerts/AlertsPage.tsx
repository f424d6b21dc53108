import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import type { AlertShown } from "~/api/schema";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { Icon, type IconName } from "~/components/Icon";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { Row, Rows } from "~/components/Rows";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { toast, toastProblem } from "~/components/Toast";
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
const TONES: Record<string, "problem" | "notice"> = { critical: "problem", warning: "notice" };
const SUBJECTS_SHOWN = 5;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Asked = { alert: AlertShown } | { silence: string | null };

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
      <PageHeader
        title={words.title}
        lead={words.lead}
        actions={
          mayOperate && (
            <Button icon="pause" onClick={() => setAsked({ silence: null })}>
              {words.silence}
            </Button>
          )
        }
      />
      {!found.data ? (
        <Skeleton lines={5} />
      ) : items.length === 0 ? (
        <EmptyState icon="check" title={words.emptyTitle}>
          <p>{words.emptyHint}</p>
        </EmptyState>
      ) : (
        <Rows label={words.title}>
          {items.map((alert) => (
            <Alert key={alert.id} alert={alert} mayChange={mayOperate} onAcknowledge={() => setAsked({ alert })} onSilence={() => setAsked({ silence: alert.rule })} />
          ))}
        </Rows>
      )}
      <div className={styles.sections}>
        <Silences mayChange={mayOperate} />
        <Rules mayChange={mayOperate} onSilence={(rule) => setAsked({ silence: rule })} />
        <Channels mayChange={mayOperate} />
      </div>
      {asked && "alert" in asked && <AcknowledgeDialog alert={asked.alert} onClose={close} />}
      {asked && "silence" in asked && <SilenceDialog rule={asked.silence} onClose={close} />}
    </>
  );
}

interface AlertProperties {
  alert: AlertShown;
  mayChange: boolean;
  onAcknowledge: () => void;
  onSilence: () => void;
}

function Alert({ alert, mayChange, onAcknowledge, onSilence }: AlertProperties) {
  const resolve = useMutation({
    mutationFn: () => data(client.POST("/v1/alerts/{reference}/resolve", { params: { path: { reference: alert.id } } })),
    onSuccess: () => {
      toast({ message: words.resolved });
      void queryClient.invalidateQueries();
    },
    onError: toastProblem,
  });
  const isPending = alert.state === "pending";
  const shown = alert.subjects.slice(0, SUBJECTS_SHOWN);
  const rest = Math.max(alert.number, alert.subjects.length) - shown.length;
  const about = shown.length > 0 && (
    <span>
      {shown.map((subject, index) => (
        <span key={subject}>
          {index > 0 && ", "}
          {ID.test(subject) ? <Link to={`/runs/${subject}` as never} className="mono">{`…${subject.slice(-8)}`}</Link> : subject}
        </span>
      ))}
      {rest > 0 && `, ${words.andMore(rest)}`}
    </span>
  );
  return (
    <Row
      icon={isPending ? "clock" : (ICONS[alert.severity] ?? "warning")}
      tone={isPending ? undefined : TONES[alert.severity]}
      title={alert.title}
      kind={isPending ? <Explained text={words.pendingHint}>{words.pending}</Explained> : (words.severities[alert.severity] ?? alert.severity)}
      facts={
        <Facts
          items={[
            [words.since, <Time key="s" at={alert.since} isFocusable />],
            about && [words.about, about],
            [words.rule, alert.rule],
            [words.told, words.toldTimes(alert.messages)],
          ]}
        />
      }
      actions={
        mayChange && (
          <>
            {!isPending && !alert.acknowledged_at && (
              <Button size="small" icon="check" aria-label={words.acknowledgeNamed(alert.title)} onClick={onAcknowledge}>
                {words.acknowledge}
              </Button>
            )}
            <Button size="small" icon="pause" aria-label={words.silenceNamed(alert.title)} onClick={onSilence}>
              {words.silence}
            </Button>
            {!isPending && <Menu size="small" label={words.moreNamed(alert.title)} entries={[{ label: words.resolve, icon: "check", onSelect: () => resolve.mutate() }]} />}
          </>
        )
      }
    >
      <p>{alert.summary}</p>
      {alert.acknowledged_at && (
        <p className={styles.taken}>
          <Icon name="user" size={14} />
          <span>{words.acknowledged(alert.acknowledged_by ?? "") + (alert.note ? `: ${alert.note}` : "")}</span>
        </p>
      )}
      {alert.log_tail && (
        <details className={styles.log}>
          <summary>{words.log}</summary>
          <pre tabIndex={0} aria-label={words.log}>
            {alert.log_tail}
          </pre>
        </details>
      )}
    </Row>
  );
}
