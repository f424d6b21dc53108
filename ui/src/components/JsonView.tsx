import { type ReactNode, useMemo, useState } from "react";
import { flatten, pathsThatMatch } from "~/model/jsonRows";
import { text } from "~/texts/en";
import { IconButton } from "./Button";
import { classes } from "./classes";
import { CopyButton } from "./Copy";
import { Icon } from "./Icon";
import styles from "./JsonView.module.css";

const ROWS = 500;
const TEXT_MAX = 400;

/** JSON as a tree: folded where it is large, searchable, and always text. */
export function JsonView({ value, label }: { value: unknown; label: string }) {
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [words, setWords] = useState("");
  const [most, setMost] = useState(ROWS);
  const found = useMemo(() => (words ? pathsThatMatch(value, words) : null), [value, words]);
  const rows = useMemo(() => flatten(value, toggled, found), [value, toggled, found]);
  const isTree = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  const toggle = (path: string, isOpen: boolean) => setToggled(new Map(toggled).set(path, !isOpen));
  return (
    <section className={styles.json} aria-label={label}>
      {isTree && (
        <div className={styles.tools}>
          <div className={styles.search}>
            <Icon name="search" size={14} />
            <input type="search" aria-label={`${text.json.search}: ${label}`} placeholder={text.json.search} value={words} onChange={(event) => setWords(event.target.value)} />
            {found && (
              <span className={styles.matches} role="status">
                {text.json.matches(found.count)}
              </span>
            )}
          </div>
          <CopyButton value={JSON.stringify(value, null, 2)} />
        </div>
      )}
      <div className={styles.rows} tabIndex={0} role="group" aria-label={label}>
        {rows.slice(0, most).map((row) => (
          <div key={row.path + row.kind} className={styles.row} style={{ paddingInlineStart: `${row.depth * 1.1}rem` }}>
            {row.kind === "open" ? (
              <IconButton
                icon="chevron"
                size="small"
                label={row.isOpen ? text.json.collapse : text.json.expand}
                aria-expanded={row.isOpen}
                className={classes(styles.fold, row.isOpen && styles.unfolded)}
                onClick={() => toggle(row.path, row.isOpen)}
              />
            ) : (
              <span className={styles.indent} />
            )}
            <span className={styles.content}>
              {row.name !== null && <span className={styles.name}>{marked(row.name, words)}</span>}
              {row.kind === "open" && (
                <button type="button" tabIndex={-1} className={styles.summary} onClick={() => toggle(row.path, row.isOpen)}>
                  {row.isArray ? "[" : "{"}
                  {!row.isOpen && (
                    <>
                      <span className="quiet"> {row.isArray ? text.json.items(row.size) : text.json.keys(row.size)} </span>
                      {row.isArray ? "]" : "}"}
                    </>
                  )}
                </button>
              )}
              {row.kind === "close" && <span>{row.isArray ? "]" : "}"}</span>}
              {row.kind === "value" && <Leaf value={row.value} words={words} />}
            </span>
          </div>
        ))}
        {rows.length > most && (
          <button type="button" className={styles.more} onClick={() => setMost(most * 4)}>
            {text.json.more(rows.length - most)}
          </button>
        )}
      </div>
    </section>
  );
}

function Leaf({ value, words }: { value: unknown; words: string }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value === "string") {
    const isLong = value.length > TEXT_MAX && !isWhole;
    return (
      <bdi className={styles.string}>
        "{marked(isLong ? value.slice(0, TEXT_MAX) : value, words)}
        {isLong ? (
          <button type="button" className={styles.more} onClick={() => setWhole(true)}>
            … {text.json.more(value.length - TEXT_MAX)}
          </button>
        ) : (
          '"'
        )}
      </bdi>
    );
  }
  if (typeof value === "object") return <span className={styles.word}>{value === null ? "null" : Array.isArray(value) ? "[]" : "{}"}</span>;
  return <span className={typeof value === "number" ? styles.number : styles.word}>{marked(String(value), words)}</span>;
}

function marked(content: string, words: string): ReactNode {
  if (!words) return content;
  const at = content.toLowerCase().indexOf(words.toLowerCase());
  if (at < 0) return content;
  return (
    <>
      {content.slice(0, at)}
      <mark>{content.slice(at, at + words.length)}</mark>
      {content.slice(at + words.length)}
    </>
  );
}
