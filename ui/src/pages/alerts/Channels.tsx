import { useMutation, useQuery } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { ErrorNotice } from "~/components/ErrorNotice";
import { toast, toastProblem } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { words } from "~/texts/alerts";
import { CHANNEL_EXAMPLE, channelsQuery, destinationOf } from "./queries";
import styles from "./AlertsPage.module.css";

export function Channels({ mayTest }: { mayTest: boolean }) {
  const found = useQuery(channelsQuery());
  useLiveRefresh(() => void found.refetch());
  const test = useMutation({
    mutationFn: (name: string) => data(client.POST("/v1/alert-channels/{name}/test", { params: { path: { name } } })),
    onSuccess: (answer, name) => toast({ message: answer.is_delivered ? words.delivered(name) : words.notDelivered(name, answer.error ?? ""), ...(answer.is_delivered ? {} : { kind: "problem" as const, seconds: 15 }) }),
    onError: toastProblem,
  });
  const items = found.data?.items;
  return (
    <section className={styles.section}>
      <h2>{words.channels}</h2>
      {found.error && !items ? (
        <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />
      ) : items?.length === 0 ? (
        <div className={styles.example}>
          <p>{words.noChannels}</p>
          <CopyCommand commands={CHANNEL_EXAMPLE} />
        </div>
      ) : (
        <ul className={styles.plain} aria-label={words.channels}>
          {items?.map((one) => (
            <li key={one.name}>
              <span className={styles.name}>{one.name}</span>
              <span className={styles.detail}>{destinationOf(one)}</span>
              <span className="quiet">{words.kinds[one.channel.kind] ?? one.channel.kind}</span>
              {mayTest && (
                <Button size="small" icon="play" aria-label={words.testNamed(one.name)} isBusy={test.isPending && test.variables === one.name} onClick={() => test.mutate(one.name)}>
                  {words.test}
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
