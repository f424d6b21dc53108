import { useMutation } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import type { AlertRule, AlertRuleShown } from "~/api/schema";
import { sendUnlessUndone, toast, toastProblem } from "~/components/Toast";
import { words as forms } from "~/texts/alertForms";
import { words } from "~/texts/alerts";

const send = (name: string, body: object) => data(client.PUT("/v1/alert-rules/{name}", { params: { path: { name } }, body: body as AlertRule }));
const refresh = () => void queryClient.invalidateQueries();

export function useRuleActions() {
  const put = useMutation({
    mutationFn: ({ name, body }: { name: string; body: object }) => send(name, body),
    onSuccess: (_answer, { name }) => {
      toast({ message: forms.saved(name) });
      refresh();
    },
  });
  const turn = useMutation({
    mutationFn: ({ name, rule }: AlertRuleShown) => send(name, { ...rule, enabled: rule.enabled === false }),
    onSuccess: (answer, { name }) => {
      toast({ message: answer.rule.enabled === false ? words.turnedOff(name) : words.turnedOn(name) });
      refresh();
    },
    onError: toastProblem,
  });
  const remove = (name: string) => sendUnlessUndone(words.deleted(name), () => data(client.DELETE("/v1/alert-rules/{name}", { params: { path: { name } } })).then(refresh), words.kept(name));
  return { put: { ...put, problem: put.error ? asApiError(put.error) : null }, turn, remove };
}
