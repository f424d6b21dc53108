import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay, useSession } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button, IconButton } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import type { IconName } from "~/components/Icon";
import { PageHeader } from "~/components/PageHeader";
import { Row, Rows } from "~/components/Rows";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { words } from "~/texts/pauses";
import { PauseForm } from "./PauseForm";
import { endCommands, nameOf, type PausedKind, placeOf, type Stop, stopsQuery } from "./queries";
import { usePauseActions } from "./usePauseActions";

const ICONS: Record<Stop["kind"], IconName> = { everything: "pauses", queue: "queues", task: "bolt", job: "jobs", circuit: "unplugged" };

export function PausesPage() {
  const found = useQuery(stopsQuery());
  useLiveRefresh(() => void found.refetch());
  const { end } = usePauseActions();
  const [form, setForm] = useState<{ stop: Stop | null } | null>(null);
  const [command, setCommand] = useState<Stop | null>(null);
  const mayOperate = useMay("operate");
  const isEverywhere = useSession()?.scope === "*";
  const kinds: PausedKind[] = ["queue", "task", "job", ...(isEverywhere ? (["everything"] as const) : [])];
  useKeys(mayOperate ? [{ key: "p", label: words.pause, icon: "pause", run: () => setForm({ stop: null }) }] : []);
  if (found.error && !found.data) return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  const items = found.data?.items ?? [];
  return (
    <>
      <PageHeader
        title={words.title}
        lead={words.lead}
        actions={
          mayOperate && (
            <Button kind="primary" icon="pause" onClick={() => setForm({ stop: null })}>
              {words.pause}
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
          {items.map((stop) => (
            <StopRow
              key={`${stop.kind} ${stop.name}`}
              stop={stop}
              mayChange={mayOperate && (stop.kind !== "everything" || isEverywhere)}
              onChange={() => setForm({ stop })}
              onEnd={() => end.mutate(stop)}
              onCommand={() => setCommand(stop)}
            />
          ))}
        </Rows>
      )}
      {found.data?.more && <p className="quiet">{words.more}</p>}
      {form && <PauseForm stop={form.stop} kinds={kinds} onClose={() => setForm(null)} />}
      <Dialog isOpen={command !== null} onClose={() => setCommand(null)} title={words.commandTitle} width="medium">
        {command && <CopyCommand commands={endCommands(command)} />}
      </Dialog>
    </>
  );
}

interface RowProperties {
  stop: Stop;
  mayChange: boolean;
  onChange: () => void;
  onEnd: () => void;
  onCommand: () => void;
}

function StopRow({ stop, mayChange, onChange, onEnd, onCommand }: RowProperties) {
  const name = nameOf(stop);
  const place = placeOf(stop);
  const isCircuit = stop.kind === "circuit";
  const until = stop.until ? <Time key="u" at={stop.until} form="both" withoutZone isFocusable /> : isCircuit ? words.untilProbed : words.untilResumed;
  return (
    <Row
      icon={ICONS[stop.kind]}
      tone={isCircuit || stop.kind === "everything" ? "problem" : "notice"}
      title={place ? <Link to={place as never}>{name}</Link> : name}
      kind={stop.kind !== "everything" && <Explained text={words.effects[stop.kind]}>{words.kinds[stop.kind]}</Explained>}
      facts={
        <Facts
          items={[
            [words.until, until],
            stop.since && [
              words.since,
              <span key="s">
                <Time at={stop.since} isFocusable />
                {stop.actor && <span className="quiet">{` ${words.by.toLowerCase()} ${stop.actor}`}</span>}
              </span>,
            ],
          ]}
        />
      }
      actions={
        mayChange && (
          <>
            {!isCircuit && (
              <Button size="small" aria-label={words.changeNamed(name)} onClick={onChange}>
                {words.change}
              </Button>
            )}
            <Button size="small" icon="play" aria-label={isCircuit ? words.closeNamed(name) : words.endNamed(name)} onClick={onEnd}>
              {isCircuit ? words.close : words.end}
            </Button>
            <IconButton size="small" icon="copy" label={words.commands(name)} onClick={onCommand} />
          </>
        )
      }
    >
      {(stop.reason || stop.failures !== undefined) && <p>{stop.reason ?? `${words.failures(stop.failures ?? 0)}.${stop.isProbing ? ` ${words.probing}` : ""}`}</p>}
      {stop.kind === "everything" && <p>{words.effects.everything}</p>}
    </Row>
  );
}
