import { useMutation, useQuery } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import type { SilenceShown } from "~/api/schema";
import { Button } from "~/components/Button";
import { Panel } from "~/components/Panel";
import { Line, Rows } from "~/components/Rows";
import { Time } from "~/components/Time";
import { toast, toastProblem } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { words } from "~/texts/alerts";
import { silencesQuery } from "./queries";

const nameOf = ({ rule, subject }: SilenceShown) => words.silencedRule(rule, subject);

export function Silences({ mayChange }: { mayChange: boolean }) {
  const found = useQuery(silencesQuery());
  useLiveRefresh(() => void found.refetch());
  const end = useMutation({
    mutationFn: (silence: SilenceShown) => data(client.DELETE("/v1/alert-silences/{reference}", { params: { path: { reference: silence.id } } })),
    onSuccess: (_answer, silence) => {
      toast({ message: words.ended(nameOf(silence)) });
      void queryClient.invalidateQueries();
    },
    onError: toastProblem,
  });
  const items = found.data?.items ?? [];
  if (items.length === 0) return null;
  return (
    <Panel title={words.silences} isFlush>
      <Rows label={words.silences}>
        {items.map((silence) => (
          <Line
            key={silence.id}
            name={nameOf(silence)}
            detail={silence.reason}
            note={
              <>
                {`${words.until} `}
                <Time at={silence.until} form="both" withoutZone isFocusable />
                {`, ${words.by(silence.created_by)}`}
              </>
            }
            actions={
              mayChange && (
                <Button size="small" icon="play" aria-label={words.endNamed(nameOf(silence))} onClick={() => end.mutate(silence)}>
                  {words.end}
                </Button>
              )
            }
          />
        ))}
      </Rows>
    </Panel>
  );
}
