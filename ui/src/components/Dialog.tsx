import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { Button, IconButton } from "./Button";
import { ErrorNotice } from "./ErrorNotice";
import { text } from "~/texts/en";
import styles from "./Dialog.module.css";

interface Properties {
  isOpen: boolean;
  onClose: () => void;
  title: string;
  children?: ReactNode;
  footer?: ReactNode;
  width?: "small" | "medium" | "large";
  /** A press beside it closes it, too. Not where somebody may have typed something. */
  closesOutside?: boolean;
}

export function Dialog({ isOpen, onClose, title, children, footer, width = "small", closesOutside = true }: Properties) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    if (!isOpen || !dialog || dialog.open) return;
    const opener = document.activeElement;
    dialog.showModal();
    // React focuses before the dialog is shown, in vain; the browser would choose the button that closes it.
    const first = dialog.querySelector<HTMLElement>("[data-autofocus]") ?? dialog.querySelector<HTMLElement>("form :is(input, select, textarea):not(:disabled)") ?? dialog.querySelector<HTMLElement>("footer button");
    first?.focus();
    return () => {
      // Whoever uses keys goes on where they were. A dialog that leads to another page leaves its opener behind.
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
    };
  }, [isOpen]);
  if (!isOpen) return null;
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      className={`${styles.dialog} ${styles[width]}`}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => closesOutside && event.target === element.current && onClose()}
    >
      <div className={styles.inside}>
        <header className={styles.header}>
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label={text.close} size="small" onClick={onClose} />
        </header>
        <div className={styles.body}>{children}</div>
        {footer && <footer className={styles.footer}>{footer}</footer>}
      </div>
    </dialog>
  );
}

interface AskProperties {
  isOpen: boolean;
  onClose: () => void;
  onConfirm: () => void;
  title: string;
  children?: ReactNode;
  confirm: string;
  isDangerous?: boolean;
  isBusy?: boolean;
  blocked?: string | null;
  error?: unknown;
  width?: Properties["width"];
}

/** A question with one answer. Enter confirms, as in every form. */
export function AskDialog({ isOpen, onClose, onConfirm, title, children, confirm, isDangerous, isBusy, blocked, error, width }: AskProperties) {
  const form = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBusy && !blocked) onConfirm();
  };
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={title}
      width={width}
      closesOutside={false}
      footer={
        <>
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button type="submit" form={form} kind={isDangerous ? "danger" : "primary"} isBusy={isBusy} blocked={blocked}>
            {confirm}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className={styles.form}>
        {children}
        {error ? <ErrorNotice error={error} /> : null}
      </form>
    </Dialog>
  );
}
