import { useMutation } from "@tanstack/react-query";
import { queryClient } from "~/api/queries";
import { toast, toastProblem } from "~/components/Toast";
import { serverNow } from "~/model/clock";
import { millis } from "~/model/times";
import { text } from "~/texts/en";
import { words } from "~/texts/pauses";
import { nameOf, type PausedKind, sendEnd, sendPause, type Stop, type Wishes } from "./queries";

const refresh = () => void queryClient.invalidateQueries();

function wishesOf(stop: Stop): Wishes {
  // An end that has passed meanwhile would be refused.
  const until = stop.until && millis(stop.until) > serverNow() ? stop.until : undefined;
  return { ...(stop.reason ? { reason: stop.reason } : {}), ...(until ? { until } : {}) };
}

/** Pausing and ending a pause undo each other; a change is undone by what was before. */
export function usePauseActions() {
  const undo = (send: () => Promise<unknown>) => ({ label: text.undo, run: () => void send().then(refresh, toastProblem) });
  const pause = useMutation({
    mutationFn: ({ kind, name, wishes }: { kind: PausedKind; name: string; wishes: Wishes; before: Stop | null }) => sendPause(kind, name, wishes),
    onSuccess: (_answer, { kind, name, before }) => {
      const shown = nameOf({ kind, name });
      toast({
        message: before ? words.changed(shown) : words.paused(shown),
        action: undo(() => (before ? sendPause(kind, name, wishesOf(before)) : sendEnd(kind, name))),
      });
      refresh();
    },
  });
  const end = useMutation({
    mutationFn: (stop: Stop) => sendEnd(stop.kind, stop.name),
    onSuccess: (_answer, stop) => {
      const shown = nameOf(stop);
      if (stop.kind === "circuit") toast({ message: words.closed(shown) });
      else {
        const { kind, name } = stop;
        toast({ message: words.ended(shown), action: undo(() => sendPause(kind, name, wishesOf(stop))) });
      }
      refresh();
    },
    onError: toastProblem,
  });
  return { pause, end };
}
