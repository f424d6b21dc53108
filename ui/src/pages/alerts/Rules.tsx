import { useQuery } from "@tanstack/react-query";
import { ErrorNotice } from "~/components/ErrorNotice";
import { CopyCommand } from "~/components/Copy";
import type { AlertRuleShown } from "~/api/schema";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { words } from "~/texts/alerts";
import { RULE_EXAMPLE, rulesQuery } from "./queries";
import styles from "./AlertsPage.module.css";

const scopeOf = ({ rule }: AlertRuleShown) =>
  Object.entries(rule.scope ?? {})
    .filter(([, value]) => value)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(", ");

export function Rules() {
  const found = useQuery(rulesQuery());
  useLiveRefresh(() => void found.refetch());
  const items = found.data?.items;
  return (
    <section className={styles.section}>
      <h2>{words.rules}</h2>
      {found.error && !items ? (
        <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />
      ) : items?.length === 0 ? (
        <div className={styles.example}>
          <p>{words.noRules}</p>
          <CopyCommand commands={RULE_EXAMPLE} />
        </div>
      ) : (
        <ul className={styles.plain} aria-label={words.rules}>
          {items?.map((one) => (
            <li key={one.name}>
              <span className={styles.name}>{one.name}</span>
              <span className={styles.detail}>{[words.conditions[one.rule.condition.kind] ?? one.rule.condition.kind, scopeOf(one), one.rule.enabled === false && words.off].filter(Boolean).join(" · ")}</span>
              <span className="quiet">{`${words.severities[one.rule.severity ?? "warning"] ?? ""} → ${one.rule.channels?.join(", ") || words.toNobody}`}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
