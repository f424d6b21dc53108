import { useEffect, useState } from "react";
import { text } from "~/texts/en";
import { IconButton } from "./Button";
import { classes } from "./classes";
import { Icon } from "./Icon";
import { toast } from "./Toast";
import { useTip } from "./Tip";
import styles from "./Copy.module.css";

export async function copy(value: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(value);
    return true;
  } catch {
    toast({ message: text.copyFailed, kind: "problem" });
    return false;
  }
}

function useCopied(): [boolean, (value: string) => void] {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [isDone]);
  return [isDone, (value) => void copy(value).then(setDone)];
}

export function CopyButton({ value, label = text.copy }: { value: string; label?: string }) {
  const [isDone, go] = useCopied();
  return <IconButton icon={isDone ? "check" : "copy"} label={isDone ? text.copied : label} size="small" onClick={() => go(value)} />;
}

/** An id: the end tells ids apart, a click copies all of it. */
export function Id({ value, isWhole }: { value: string; isWhole?: boolean }) {
  const [isDone, go] = useCopied();
  const tip = useTip(isDone ? text.copied : `${value}  ·  ${text.clickToCopy}`);
  const shown = isWhole || value.length <= 12 ? value : `…${value.slice(-8)}`;
  return (
    <button type="button" className={classes(styles.id, "touch")} aria-label={`${shown} ${text.copyId}`} {...tip} onClick={() => go(value)}>
      <span>{shown}</span>
      <Icon name={isDone ? "check" : "copy"} size={14} />
    </button>
  );
}

/** A command to copy, in one of several languages. */
export function CopyCommand({ commands }: { commands: { label: string; command: string }[] }) {
  const [chosen, choose] = useState(0);
  const shown = commands[Math.min(chosen, commands.length - 1)];
  if (!shown) return null;
  return (
    <div className={styles.command}>
      {commands.length > 1 && (
        <div className={styles.kinds} role="group" aria-label={text.commandKind}>
          {commands.map((one, index) => (
            <button key={one.label} type="button" aria-pressed={index === chosen} className={classes(styles.kind, "touch")} onClick={() => choose(index)}>
              {one.label}
            </button>
          ))}
        </div>
      )}
      <div className={classes(styles.box, commands.length > 1 && styles.joined)}>
        <pre tabIndex={0}>{shown.command}</pre>
        <CopyButton value={shown.command} />
      </div>
    </div>
  );
}
