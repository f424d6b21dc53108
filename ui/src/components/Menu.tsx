import { type KeyboardEvent, type ReactNode, useRef, useState } from "react";
import { Button, type ButtonKind, IconButton } from "./Button";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";
import { Popover } from "./Popover";
import styles from "./Menu.module.css";

export interface MenuItem {
  label: string;
  icon?: IconName;
  hint?: ReactNode;
  /** For a choice of one: whether it is the current one. */
  isChosen?: boolean;
  isDangerous?: boolean;
  /** Why it can't be used now. */
  blocked?: string | null;
  onSelect: () => void;
}

export type MenuEntry = MenuItem | { heading: string } | "line";

interface Properties {
  label: string;
  entries: MenuEntry[];
  icon?: IconName;
  /** Shown instead of an icon alone. */
  text?: ReactNode;
  kind?: ButtonKind;
  size?: "small" | "normal";
  align?: "start" | "end";
  className?: string;
}

export function Menu({ label, entries, icon = "more", text, kind = "quiet", size, align = "end", className }: Properties) {
  const [isOpen, setOpen] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    anchor.current?.focus();
  };
  const properties = {
    ref: anchor,
    kind,
    size,
    className,
    "aria-haspopup": "menu" as const,
    "aria-expanded": isOpen,
    onClick: () => setOpen(!isOpen),
  };
  return (
    <>
      {text === undefined ? (
        <IconButton icon={icon} label={label} {...properties} />
      ) : (
        <Button aria-label={label} {...properties} className={classes(styles.trigger, className)}>
          {text}
          <Icon name="down" size={14} />
        </Button>
      )}
      <Popover isOpen={isOpen} onClose={() => setOpen(false)} anchor={anchor} label={label} role="menu" align={align}>
        <MenuList entries={entries} onDone={close} />
      </Popover>
    </>
  );
}

export function MenuList({ entries, onDone }: { entries: MenuEntry[]; onDone: () => void }) {
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const items = [...event.currentTarget.querySelectorAll<HTMLElement>("[role^='menuitem']")];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const go = (index: number) => items[(index + items.length) % items.length]?.focus();
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(-1);
    else if (event.key === "Tab") onDone();
    else return;
    event.preventDefault();
  };
  return (
    <div onKeyDown={onKeyDown} className={styles.list}>
      {entries.map((entry, index) => {
        if (entry === "line") return <hr key={index} className={styles.line} />;
        if ("heading" in entry)
          return (
            <p key={index} className={styles.heading}>
              {entry.heading}
            </p>
          );
        return (
          <button
            key={index}
            type="button"
            role={entry.isChosen === undefined ? "menuitem" : "menuitemradio"}
            aria-checked={entry.isChosen}
            aria-disabled={entry.blocked ? true : undefined}
            className={classes(styles.item, entry.isDangerous && styles.dangerous)}
            onClick={() => {
              if (entry.blocked) return;
              onDone();
              entry.onSelect();
            }}
          >
            {entry.isChosen !== undefined ? (
              <Icon name="check" size={16} className={entry.isChosen ? undefined : styles.unchosen} />
            ) : (
              entry.icon && <Icon name={entry.icon} size={16} />
            )}
            <span className={styles.label}>
              {entry.label}
              {entry.blocked && <small>{entry.blocked}</small>}
            </span>
            {entry.hint && <span className={styles.hint}>{entry.hint}</span>}
          </button>
        );
      })}
    </div>
  );
}
