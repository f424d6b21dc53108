import type { ReactNode } from "react";
import { type ApiError, asApiError } from "~/api/problems";
import { text } from "~/texts/en";
import { Button } from "./Button";
import { problemText } from "./ErrorNotice";
import { Icon, type IconName } from "./Icon";
import styles from "./EmptyState.module.css";

interface Properties {
  icon: IconName;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  /** 1 where it stands for the whole page. */
  level?: 1 | 2;
}

/** A page or list without content: says why, and what to do. */
export function EmptyState({ icon, title, children, action, level = 2 }: Properties) {
  const Heading = level === 1 ? "h1" : "h2";
  return (
    <div className={styles.empty}>
      <span className={styles.mark}>
        <Icon name={icon} size={26} />
      </span>
      <Heading className={styles.title}>{title}</Heading>
      {children && <div className={styles.told}>{children}</div>}
      {action && <div className={styles.action}>{action}</div>}
    </div>
  );
}

/** For a filter that fits nothing. */
export function NothingFits({ what, onClear }: { what: string; onClear: () => void }) {
  return (
    <EmptyState icon="filter" title={text.empty.nothingFits(what)} action={<Button onClick={onClear}>{text.empty.clearFilters}</Button>}>
      <p>{text.empty.nothingFitsHint}</p>
    </EmptyState>
  );
}

const ICONS: Partial<Record<ApiError["kind"], IconName>> = { unreachable: "unplugged", forbidden: "lock", not_found: "search" };

/** For a page that could not be loaded: not there, not allowed, or no server. */
export function Unavailable({ error, onRetry, what, level = 1 }: { error: unknown; onRetry?: () => void; what?: string; level?: 1 | 2 }) {
  const problem = asApiError(error);
  const titles: Partial<Record<ApiError["kind"], string>> = {
    unreachable: text.empty.unreachable,
    forbidden: text.empty.forbidden,
    not_found: text.empty.notFound(what ?? text.empty.thisPage),
  };
  return (
    <EmptyState
      level={level}
      icon={ICONS[problem.kind] ?? "warning"}
      title={titles[problem.kind] ?? text.empty.failed}
      action={
        onRetry && problem.kind !== "forbidden" ? (
          <Button icon="rerun" onClick={onRetry}>
            {text.retry}
          </Button>
        ) : undefined
      }
    >
      <p>{problem.kind === "unreachable" ? text.empty.unreachableHint : problemText(problem)}</p>
      {problem.requestId && <p className={styles.request}>{`${text.problems.request} ${problem.requestId}`}</p>}
    </EmptyState>
  );
}
