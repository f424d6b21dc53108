import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Menu } from "~/components/Menu";
import { Panel } from "~/components/Panel";
import { Line, Rows } from "~/components/Rows";
import { sendUnlessUndone, toast, toastProblem } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { words } from "~/texts/alerts";
import { ChannelDialog } from "./ChannelDialog";
import { CHANNEL_EXAMPLE } from "./commands";
import { channelsQuery, destinationOf } from "./queries";
import styles from "./AlertsPage.module.css";

const remove = (name: string) =>
  sendUnlessUndone(
    words.deleted(name),
    () => data(client.DELETE("/v1/alert-channels/{name}", { params: { path: { name } } })).then(() => void queryClient.invalidateQueries()),
    words.kept(name),
  );

export function Channels({ mayChange }: { mayChange: boolean }) {
  const found = useQuery(channelsQuery());
  useLiveRefresh(() => void found.refetch());
  const [form, setForm] = useState<{ name: string | null } | null>(null);
  const test = useMutation({
    mutationFn: (name: string) => data(client.POST("/v1/alert-channels/{name}/test", { params: { path: { name } } })),
    onSuccess: (answer, name) => toast({ message: answer.is_delivered ? words.delivered(name) : words.notDelivered(name, answer.error ?? ""), ...(answer.is_delivered ? {} : { kind: "problem" as const, seconds: 15 }) }),
    onError: toastProblem,
  });
  const items = found.data?.items;
  return (
    <Panel
      title={words.channels}
      hint={words.channelsLead}
      isFlush
      actions={
        mayChange && (
          <Button icon="plus" onClick={() => setForm({ name: null })}>
            {words.newChannel}
          </Button>
        )
      }
    >
      {found.error && !items ? (
        <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />
      ) : items?.length === 0 ? (
        <div className={styles.example}>
          <p>{words.noChannels}</p>
          <CopyCommand commands={CHANNEL_EXAMPLE} />
        </div>
      ) : (
        <Rows label={words.channels}>
          {items?.map((one) => (
            <Line
              key={one.name}
              name={one.name}
              detail={destinationOf(one)}
              note={words.kinds[one.channel.kind] ?? one.channel.kind}
              actions={
                mayChange && (
                  <>
                    <Button size="small" icon="play" aria-label={words.testNamed(one.name)} isBusy={test.isPending && test.variables === one.name} onClick={() => test.mutate(one.name)}>
                      {words.test}
                    </Button>
                    <Button size="small" aria-label={words.changeNamed(one.name)} onClick={() => setForm({ name: one.name })}>
                      {words.change}
                    </Button>
                    <Menu size="small" label={words.moreNamed(one.name)} entries={[{ label: words.delete, icon: "trash", isDangerous: true, onSelect: () => remove(one.name) }]} />
                  </>
                )
              }
            />
          ))}
        </Rows>
      )}
      {form && <ChannelDialog name={form.name} taken={items?.map((one) => one.name) ?? []} onClose={() => setForm(null)} onTest={(name) => test.mutate(name)} />}
    </Panel>
  );
}
