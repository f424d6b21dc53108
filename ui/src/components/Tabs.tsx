import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import { classes } from "./classes";
import styles from "./Tabs.module.css";

export interface TabItem {
  to: string;
  label: string;
  badge?: ReactNode;
  isCurrent: boolean;
}

/** Tabs are links: each has a URL. */
export function Tabs({ items, label }: { items: TabItem[]; label: string }) {
  const frame = useRef<HTMLElement>(null);
  const current = items.find((item) => item.isCurrent)?.to;
  useEffect(() => {
    // Where there is no room for all of them, the current one is in sight.
    const tab = frame.current?.querySelector<HTMLElement>("[aria-current]");
    if (frame.current && tab) frame.current.scrollLeft = tab.offsetLeft - (frame.current.clientWidth - tab.offsetWidth) / 2;
  }, [current]);
  return (
    <nav ref={frame} className={styles.tabs} aria-label={label}>
      {items.map((item) => (
        <Link
          key={item.to}
          to={item.to}
          search={(before: Record<string, unknown>) => ({ ns: before.ns, zone: before.zone }) as never}
          replace
          resetScroll={false}
          aria-current={item.isCurrent ? "page" : undefined}
          className={classes(styles.tab, item.isCurrent && styles.current)}
        >
          {item.label}
          {item.badge != null && <span className={styles.badge}>{item.badge}</span>}
        </Link>
      ))}
    </nav>
  );
}
