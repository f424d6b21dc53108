import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { PREFIX } from "~/api/client";
import { key, queryClient } from "~/api/queries";
import { useSession } from "~/api/session";
import { Icon } from "~/components/Icon";
import { Menu } from "~/components/Menu";
import { useTip } from "~/components/Tip";
import { toggleLive, useLive } from "~/live/pulse";
import { useNow } from "~/model/clock";
import { prefer, type Theme, usePreferences } from "~/model/preferences";
import { browserZone, duration, type ZoneChoice } from "~/model/times";
import { text } from "~/texts/en";
import { openOverlay } from "./overlayState";
import { useZoneChoice } from "./useZone";
import styles from "./TopBar.module.css";

export function TopBar() {
  return (
    <header className={styles.bar}>
      <NamespaceMenu />
      <button type="button" className={styles.search} onClick={() => openOverlay("palette")}>
        <Icon name="search" size={16} />
        <span className={styles.words}>{text.bar.search}</span>
        <kbd aria-hidden="true">{/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘ K" : "Ctrl K"}</kbd>
      </button>
      <div className={styles.end}>
        <LiveIndicator />
        <ZoneMenu />
        <AccountMenu />
      </div>
    </header>
  );
}

function NamespaceMenu() {
  const session = useSession();
  const navigate = useNavigate();
  const { data: names } = useQuery({
    queryKey: key("namespaces"),
    queryFn: async () => {
      const answer = await fetch(`${PREFIX}/v1/namespaces`);
      if (!answer.ok) return [];
      return ((await answer.json()) as { items: { name: string }[] }).items.map((item) => item.name);
    },
    enabled: session?.is_signed_in ?? false,
    staleTime: 60_000,
  });
  const tip = useTip(text.bar.namespaceHint);
  const current = session?.namespace ?? "default";
  if (!names || names.length < 2)
    return (
      <span className={styles.namespace} {...tip}>
        {current}
      </span>
    );
  const go = (name: string) => {
    queryClient.clear();
    void navigate({ to: "." as never, search: ((before: object) => ({ ...before, ns: name })) as never });
  };
  return (
    <Menu
      label={`${text.bar.namespace}: ${current}`}
      text={current}
      align="start"
      entries={[{ heading: text.bar.namespace }, ...names.map((name) => ({ label: name, isChosen: name === current, onSelect: () => go(name) }))]}
    />
  );
}

function LiveIndicator() {
  const { state, heardAt } = useLive();
  const now = useNow();
  const age = heardAt === null ? "" : duration(Math.max(1, Math.round((now - heardAt) / 1000)));
  const words = {
    live: [text.bar.live.live, text.bar.live.liveHint],
    connecting: [text.bar.live.connecting, text.bar.live.liveHint],
    paused: [text.bar.live.paused, text.bar.live.pausedHint],
    lost: [age ? text.bar.live.lost(age) : text.bar.live.connecting, text.bar.live.lostHint],
  }[state] as [string, string];
  const tip = useTip(words[1]);
  return (
    <button type="button" className={styles.live} aria-label={words[0]} data-state={state} onClick={toggleLive} aria-pressed={state !== "paused"} {...tip}>
      <span className={styles.pulse} aria-hidden="true" />
      <span className={styles.words}>{words[0]}</span>
    </button>
  );
}

const ZONES: [ZoneChoice, string][] = [
  ["local", text.bar.zoneLocal],
  ["utc", text.bar.zoneUtc],
  ["job", text.bar.zoneJob],
];

function ZoneMenu() {
  const zone = useZoneChoice();
  const choose = useChooseZone();
  const short = zone === "utc" ? "UTC" : zone === "job" ? text.bar.zoneJob : browserZone().split("/").pop()?.replaceAll("_", " ");
  return (
    <Menu
      label={`${text.bar.zone}: ${short}`}
      className={styles.zone}
      text={
        <>
          <Icon name="globe" size={16} />
          <span className={styles.words}>{short}</span>
        </>
      }
      entries={[
        { heading: text.bar.zone },
        ...ZONES.map(([value, label]) => ({
          label,
          hint: value === "local" ? browserZone() : undefined,
          isChosen: value === zone,
          onSelect: () => choose(value),
        })),
      ]}
    />
  );
}

export function useChooseZone(): (zone: ZoneChoice) => void {
  const navigate = useNavigate();
  return (zone) => {
    prefer({ zone });
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, zone: undefined })) as never });
  };
}

const THEMES: Theme[] = ["system", "light", "dark"];

function AccountMenu() {
  const session = useSession();
  const { theme, keys } = usePreferences();
  const signOut = async () => {
    try {
      await fetch(`${PREFIX}/v1/session`, { method: "DELETE", headers: { "Foliot-CSRF": "1" } });
    } finally {
      queryClient.clear();
      location.assign(`${PREFIX}/ui/`);
    }
  };
  return (
    <Menu
      label={text.bar.account}
      icon="user"
      entries={[
        { heading: session?.mode === "token" && session.name ? text.bar.signedInAs(session.name, session.role ?? "") : text.bar.openMode },
        "line",
        { heading: text.bar.theme },
        ...THEMES.map((value) => ({ label: text.bar.themes[value], isChosen: value === theme, onSelect: () => prefer({ theme: value }) })),
        "line",
        { label: text.bar.keys, isChosen: keys, onSelect: () => prefer({ keys: !keys }) },
        { label: text.bar.help, icon: "help", hint: <kbd>?</kbd>, onSelect: () => openOverlay("help") },
        ...(session?.mode === "token" && session.is_signed_in ? (["line", { label: text.bar.signOut, icon: "lock", onSelect: () => void signOut() }] as const) : []),
      ]}
    />
  );
}
