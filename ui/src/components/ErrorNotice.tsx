import { type ApiError, asApiError } from "~/api/problems";
import { sentence, text } from "~/texts/en";
import { Button } from "./Button";
import { Icon } from "./Icon";
import styles from "./ErrorNotice.module.css";

/** One sentence for people, from a problem document. */
export function problemText(error: ApiError): string {
  if (error.kind === "unreachable") return text.problems.unreachable;
  return sentence(error.detail);
}

export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = asApiError(error);
  const told = [
    problem.field && `${text.problems.field} ${problem.field}`,
    problem.status > 0 && `${text.problems.code} ${problem.code}`,
    problem.requestId && `${text.problems.request} ${problem.requestId}`,
  ].filter(Boolean);
  return (
    <div role="alert" className={styles.notice}>
      <Icon name="warning" size={18} />
      <div>
        <p>{problemText(problem)}</p>
        {told.length > 0 && <p className={styles.details}>{told.join(" · ")}</p>}
      </div>
      {onRetry && (
        <Button size="small" icon="rerun" onClick={onRetry}>
          {text.retry}
        </Button>
      )}
    </div>
  );
}
