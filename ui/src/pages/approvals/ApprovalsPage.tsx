import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { client, data } from "~/api/client";
import type { ApprovalShown } from "~/api/schema";
import { useMay } from "~/api/session";
import { Button, IconButton } from "~/components/Button";
import { CopyCommand, Id } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { JsonView } from "~/components/JsonView";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { FreshButton } from "~/components/Table";
import { Tags } from "~/components/Tag";
import { Time } from "~/components/Time";
import { useKeysetList } from "~/live/useKeysetList";
import { bytes } from "~/model/numbers";
import { text } from "~/texts/en";
import { SignalDialog } from "../runs/SignalDialog";
import { APPROVAL_EXAMPLE, signalCommands } from "../workflows/commands";
import styles from "./ApprovalsPage.module.css";

const { approvals: words } = text;

const page = (after: string | undefined, signal: AbortSignal) =>
  data(client.GET("/v1/approvals", { params: { query: { limit: 50, ...(after ? { after } : {}) } }, signal }));

interface Asked {
  item: ApprovalShown;
  action: "approve" | "refuse" | "command";
}

export function ApprovalsPage() {
  const list = useKeysetList<ApprovalShown>({ listKey: "approvals", fetchPage: page, idOf: (item) => item.id });
  const [asked, setAsked] = useState<Asked | null>(null);
  const mayOperate = useMay("operate");
  const close = () => {
    setAsked(null);
    list.reload();
  };
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} />
      <FreshButton count={list.freshCount} onShow={list.showFresh} />
      {list.error && list.items.length === 0 ? (
        <Unavailable level={2} error={list.error} onRetry={list.reload} />
      ) : list.isLoading && list.items.length === 0 ? (
        <Skeleton lines={6} />
      ) : list.items.length === 0 ? (
        <EmptyState icon="approvals" title={words.emptyTitle}>
          <p>{words.emptyHint}</p>
          <div className={styles.command}>
            <CopyCommand commands={APPROVAL_EXAMPLE()} />
          </div>
        </EmptyState>
      ) : (
        <ul className={styles.list} aria-label={words.title}>
          {list.items.map((item) => (
            <Approval key={item.id} item={item} mayDecide={mayOperate} onAsk={(action) => setAsked({ item, action })} />
          ))}
        </ul>
      )}
      {list.hasMore && (
        <Button className={styles.more} onClick={list.loadMore} isBusy={list.isLoadingMore}>
          {words.more}
        </Button>
      )}
      {asked && asked.action !== "command" && <SignalDialog id={asked.item.id} isApproval={asked.action === "approve"} onClose={close} />}
      <Dialog isOpen={asked?.action === "command"} onClose={() => setAsked(null)} title={text.run.commandTitle} width="medium">
        {asked && <CopyCommand commands={signalCommands(asked.item.id)} />}
      </Dialog>
    </>
  );
}

const PLAIN_MAX = 8;

/** A few plain values as they are; anything else as JSON. */
function Values({ value, label }: { value: object; label: string }) {
  const entries = Object.entries(value) as [string, unknown][];
  const isPlain = entries.length <= PLAIN_MAX && entries.every(([, one]) => one === null || typeof one === "number" || typeof one === "boolean" || (typeof one === "string" && one.length <= 200 && !one.includes("\n")));
  return isPlain ? <Facts items={entries.map(([name, one]) => [name, String(one)])} /> : <JsonView value={value} label={label} />;
}

function nameOf(item: ApprovalShown): string {
  return item.step ?? item.name ?? item.task;
}

function Approval({ item, mayDecide, onAsk }: { item: ApprovalShown; mayDecide: boolean; onAsk: (action: Asked["action"]) => void }) {
  const name = nameOf(item);
  const hasPayload = item.payload !== null && typeof item.payload === "object" && Object.keys(item.payload).length > 0;
  const hasMetadata = item.metadata !== null && typeof item.metadata === "object" && Object.keys(item.metadata).length > 0;
  return (
    <li className={styles.card}>
      <header className={styles.head}>
        <div className={styles.titles}>
          {item.workflow_id && (
            <p className={styles.origin}>
              <Link to={`/workflows/${item.workflow_id}` as never}>{item.workflow ?? text.workflows.one}</Link>
            </p>
          )}
          <h2>
            <Link to={`/runs/${item.id}/why` as never} className={`${styles.name} touch`}>
              {name}
            </Link>
          </h2>
          <Tags names={item.tags} most={3} isLink />
        </div>
        <div className={styles.actions}>
          {mayDecide && (
            <>
              <Button icon="close" aria-label={words.refuseNamed(name)} onClick={() => onAsk("refuse")}>
                {text.run.why.refuse}
              </Button>
              <Button kind="primary" icon="check" aria-label={words.approveNamed(name)} onClick={() => onAsk("approve")}>
                {text.run.why.approve}
              </Button>
            </>
          )}
          <IconButton icon="copy" label={words.commands} onClick={() => onAsk("command")} />
        </div>
      </header>
      <Facts
        columns
        items={[
          [words.since, <Time key="s" at={item.since} isFocusable />],
          item.until && [words.until, <Time key="u" at={item.until} form="both" withoutZone isFocusable />],
          item.signals.length > 0 && [words.signals, item.signals.join(", ")],
          item.task !== "wait" && [text.run.facts.task, item.task],
          [text.run.facts.queue, item.queue],
          [text.run.facts.id, <Id key="i" value={item.id} />],
        ]}
      />
      {(hasMetadata || hasPayload || (item.payload === null && item.payload_bytes > 100)) && (
        <div className={styles.data}>
          {hasMetadata && (
            <section>
              <h3>{words.metadata}</h3>
              <Values value={item.metadata as object} label={words.metadata} />
            </section>
          )}
          {hasPayload ? (
            <section>
              <h3>{words.payload}</h3>
              <Values value={item.payload as object} label={words.payload} />
            </section>
          ) : (
            item.payload === null && item.payload_bytes > 100 && <p className="quiet">{`${words.payload}: ${words.large(bytes(item.payload_bytes))}`}</p>
          )}
        </div>
      )}
    </li>
  );
}
