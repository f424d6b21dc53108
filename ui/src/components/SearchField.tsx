import { useEffect, useRef, useState } from "react";
import { text } from "~/texts/en";
import { IconButton } from "./Button";
import { Icon } from "./Icon";
import styles from "./SearchField.module.css";

/** Words to look for. The URL follows a moment after typing; `/` goes here. */
export function SearchField({ value, onChange, label, placeholder }: { value: string; onChange: (value: string) => void; label: string; placeholder?: string }) {
  const [typed, setTyped] = useState(value);
  const told = useRef(value);
  useEffect(() => {
    // The value has changed from elsewhere, such as by the back button.
    if (value !== told.current) setTyped(value);
    told.current = value;
  }, [value]);
  useEffect(() => {
    if (typed === told.current) return;
    const timer = setTimeout(() => {
      told.current = typed;
      onChange(typed);
    }, 200);
    return () => clearTimeout(timer);
  }, [typed, onChange]);
  return (
    <div className={styles.field}>
      <Icon name="search" size={16} />
      <input data-filter type="text" role="searchbox" aria-label={label} placeholder={placeholder} autoComplete="off" spellCheck={false} value={typed} onChange={(event) => setTyped(event.target.value)} />
      {typed && <IconButton icon="close" size="small" label={text.empty.clearFilters} onClick={() => setTyped("")} />}
    </div>
  );
}
