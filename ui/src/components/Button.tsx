import { type ButtonHTMLAttributes, type ReactNode, type Ref } from "react";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";
import { useTip } from "./Tip";
import styles from "./Button.module.css";

export type ButtonKind = "primary" | "plain" | "quiet" | "danger";

interface Common extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: ButtonKind;
  size?: "small" | "normal";
  /** Why it can't be used now. The button stays focusable, so that everybody can learn the reason. */
  blocked?: string | null;
  isBusy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({
  kind = "plain",
  size = "normal",
  icon,
  blocked,
  isBusy,
  children,
  className,
  onClick,
  ...rest
}: Common & { icon?: IconName; children: ReactNode }) {
  const tip = useTip(blocked || null);
  return (
    <button
      type="button"
      {...rest}
      {...tip}
      className={classes(styles.button, styles[kind], size === "small" && styles.small, isBusy && styles.busy, className)}
      aria-disabled={blocked || isBusy ? true : undefined}
      aria-busy={isBusy || undefined}
      onClick={blocked || isBusy ? (event) => event.preventDefault() : onClick}
    >
      {icon && <Icon name={icon} size={size === "small" ? 16 : 18} />}
      <span>{children}</span>
    </button>
  );
}

export function IconButton({
  icon,
  label,
  kind = "quiet",
  size = "normal",
  blocked,
  isBusy,
  className,
  onClick,
  ...rest
}: Common & { icon: IconName; label: string }) {
  const tip = useTip(blocked || label);
  return (
    <button
      type="button"
      {...rest}
      {...tip}
      aria-label={label}
      className={classes(styles.button, styles[kind], styles.square, size === "small" && styles.small, className)}
      aria-disabled={blocked || isBusy ? true : undefined}
      onClick={blocked || isBusy ? (event) => event.preventDefault() : onClick}
    >
      <Icon name={icon} size={size === "small" ? 16 : 18} />
    </button>
  );
}
