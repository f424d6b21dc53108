import { useNavigate, useRouterState } from "@tanstack/react-router";
import { type ComponentType, useEffect } from "react";
import { type Permission, useSession } from "~/api/session";
import { ApiError } from "~/api/problems";
import { Unavailable } from "~/components/EmptyState";
import { PageHeader } from "~/components/PageHeader";
import { Tabs } from "~/components/Tabs";
import { AuditTab } from "./AuditTab";
import { ConfigurationTab } from "./ConfigurationTab";
import { DatabaseTab } from "./DatabaseTab";
import { HealthTab } from "./HealthTab";
import { NamespacesTab } from "./NamespacesTab";
import styles from "./settings.module.css";
import { words } from "./texts";
import { TokensTab } from "./TokensTab";

interface Tab {
  name: keyof typeof words.tabs;
  needs: Permission;
  /** Of the whole installation: needs a token for all namespaces. */
  isGlobal?: boolean;
  content: ComponentType;
}

const TABS: Tab[] = [
  { name: "health", needs: "view", isGlobal: true, content: HealthTab },
  { name: "database", needs: "operate", isGlobal: true, content: DatabaseTab },
  { name: "tokens", needs: "administer", content: TokensTab },
  { name: "namespaces", needs: "view", content: NamespacesTab },
  { name: "audit", needs: "administer", content: AuditTab },
  { name: "configuration", needs: "administer", isGlobal: true, content: ConfigurationTab },
];

export function SettingsPage() {
  const session = useSession();
  const navigate = useNavigate();
  const asked = useRouterState({ select: (state) => /\/settings\/([a-z]+)/.exec(state.location.pathname)?.[1] });
  const allowed = TABS.filter((tab) => session?.permissions.includes(tab.needs) && (!tab.isGlobal || session.scope === "*"));
  const first = allowed[0]?.name;
  useEffect(() => {
    if (!asked && first) void navigate({ to: `/settings/${first}` as never, replace: true });
  }, [asked, first, navigate]);
  if (!session) return null;
  const current = allowed.find((tab) => tab.name === asked);
  const hidden = TABS.find((tab) => tab.name === asked);
  const why = hidden && (session.permissions.includes(hidden.needs) ? words.needsAll : words.needs[hidden.needs]);
  return (
    <>
      <PageHeader title={current ? words.tabs[current.name] : words.title} heading={words.title} />
      <Tabs label={words.title} items={allowed.map((tab) => ({ to: `/settings/${tab.name}`, label: words.tabs[tab.name], isCurrent: tab === current }))} />
      <div className={styles.content}>{current ? <current.content /> : asked && <Unavailable level={2} error={new ApiError(hidden ? 403 : 404, why ?? "", "")} />}</div>
    </>
  );
}
