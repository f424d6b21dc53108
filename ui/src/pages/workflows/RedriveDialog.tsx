import { useMutation, useQuery } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import { AskDialog } from "~/components/Dialog";
import { Skeleton } from "~/components/Skeleton";
import { StateBadge } from "~/components/StateBadge";
import { toast } from "~/components/Toast";
import { text } from "~/texts/en";
import { redrivePlanQuery, type Workflow } from "./queries";
import styles from "./RedriveDialog.module.css";

const { workflows: words } = text;
const SHOWN = 200;

/** Says which steps run again and which keep their results, before it does it. */
export function RedriveDialog({ workflow, onClose, onDone }: { workflow: Workflow; onClose: () => void; onDone: () => void }) {
  const plan = useQuery(redrivePlanQuery(workflow.id));
  const run = useMutation({
    mutationFn: () => data(client.POST("/v1/workflows/{reference}/redrive", { params: { path: { reference: workflow.id } }, body: {} })),
    onSuccess: () => {
      toast({ message: words.redriven });
      void queryClient.invalidateQueries({ predicate: ({ queryKey }) => !queryKey.includes("graph") });
      onDone();
    },
  });
  const again = plan.data?.again ?? [];
  const kept = plan.data?.kept ?? [];
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={() => run.mutate()} title={words.redriveTitle} confirm={words.redriveConfirm(again.length)} isBusy={run.isPending || plan.isLoading} blocked={plan.data || plan.isLoading ? null : words.redriveBlocked.good} error={run.error ?? plan.error}>
      <p>{words.redriveHint}</p>
      {plan.isLoading && <Skeleton lines={4} />}
      {again.length > 0 && (
        <section className={styles.part}>
          <h3>{words.again(again.length)}</h3>
          <ul tabIndex={0}>
            {again.slice(0, SHOWN).map((step) => (
              <li key={step.key}>
                <StateBadge state={step.state ?? "waiting"} isQuiet explain={false} word="" />
                <span className={styles.key}>{step.key}</span>
                <span className="quiet">{words.because[step.because] ?? step.because}</span>
              </li>
            ))}
            {again.length > SHOWN && <li className="quiet">{words.step.more(again.length - SHOWN)}</li>}
          </ul>
        </section>
      )}
      {kept.length > 0 && (
        <section className={styles.part}>
          <h3>{words.kept(kept.length)}</h3>
          <ul tabIndex={0}>
            {kept.slice(0, SHOWN).map((step) => (
              <li key={step.key}>
                <StateBadge state={step.state} isQuiet explain={false} word="" />
                <span className={styles.key}>{step.key}</span>
              </li>
            ))}
            {kept.length > SHOWN && <li className="quiet">{words.step.more(kept.length - SHOWN)}</li>}
          </ul>
        </section>
      )}
    </AskDialog>
  );
}
