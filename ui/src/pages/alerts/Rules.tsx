import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { AlertRuleShown } from "~/api/schema";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Menu } from "~/components/Menu";
import { Panel } from "~/components/Panel";
import { Line, Rows } from "~/components/Rows";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { words } from "~/texts/alerts";
import { RULE_EXAMPLE } from "./commands";
import { rulesQuery } from "./queries";
import { RuleDialog } from "./RuleDialog";
import { useRuleActions } from "./useRuleActions";
import styles from "./AlertsPage.module.css";

const scopeOf = ({ rule }: AlertRuleShown) =>
  Object.entries(rule.scope ?? {})
    .filter(([, value]) => value)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(", ");

const detailOf = (one: AlertRuleShown) => [words.conditions[one.rule.condition.kind] ?? one.rule.condition.kind, scopeOf(one), one.rule.enabled === false && words.off].filter(Boolean).join(" · ");

export function Rules({ mayChange, onSilence }: { mayChange: boolean; onSilence: (rule: string) => void }) {
  const found = useQuery(rulesQuery());
  useLiveRefresh(() => void found.refetch());
  const { turn, remove } = useRuleActions();
  const [form, setForm] = useState<{ rule: AlertRuleShown | null } | null>(null);
  const items = found.data?.items;
  return (
    <Panel
      title={words.rules}
      hint={words.rulesLead}
      isFlush
      actions={
        mayChange && (
          <Button icon="plus" onClick={() => setForm({ rule: null })}>
            {words.newRule}
          </Button>
        )
      }
    >
      {found.error && !items ? (
        <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />
      ) : items?.length === 0 ? (
        <div className={styles.example}>
          <p>{words.noRules}</p>
          <CopyCommand commands={RULE_EXAMPLE} />
        </div>
      ) : (
        <Rows label={words.rules}>
          {items?.map((one) => (
            <Line
              key={one.name}
              name={one.name}
              detail={detailOf(one)}
              note={`${words.severities[one.rule.severity ?? "warning"] ?? ""} → ${one.rule.channels?.join(", ") || words.toNobody}`}
              isQuiet={one.rule.enabled === false}
              actions={
                mayChange && (
                  <>
                    <Button size="small" aria-label={words.changeNamed(one.name)} onClick={() => setForm({ rule: one })}>
                      {words.change}
                    </Button>
                    <Menu
                      size="small"
                      label={words.moreNamed(one.name)}
                      entries={[
                        { label: words.silence, icon: "pause", onSelect: () => onSilence(one.name) },
                        one.rule.enabled === false ? { label: words.turnOn, icon: "play", onSelect: () => turn.mutate(one) } : { label: words.turnOff, icon: "unplugged", onSelect: () => turn.mutate(one) },
                        "line",
                        { label: words.delete, icon: "trash", isDangerous: true, onSelect: () => remove(one.name) },
                      ]}
                    />
                  </>
                )
              }
            />
          ))}
        </Rows>
      )}
      {form && <RuleDialog rule={form.rule} taken={items?.map((one) => one.name) ?? []} onClose={() => setForm(null)} />}
    </Panel>
  );
}
