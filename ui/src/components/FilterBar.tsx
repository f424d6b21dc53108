import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { type FilterKey, parseFilter, type Term, termText, withoutTerm } from "~/model/filter";
import { text } from "~/texts/en";
import { IconButton } from "./Button";
import { classes } from "./classes";
import { Icon } from "./Icon";
import { Popover } from "./Popover";
import { useTip } from "./Tip";
import styles from "./FilterBar.module.css";

export interface Suggestion {
  value: string;
  hint?: string;
}

interface Properties {
  value: string;
  onChange: (value: string) => void;
  keys: readonly FilterKey[];
  /** Known values of a key that contain what is typed. */
  suggest: (key: string, typed: string) => Suggestion[];
  placeholder: string;
  label: string;
  children?: ReactNode;
}

interface Choice {
  insert: string;
  label: string;
  hint?: string;
  isWhole: boolean;
}

/** Filters as chips and as text: a chip is a word of the filter language, and typing completes it. */
export function FilterBar({ value, onChange, keys, suggest, placeholder, label, children }: Properties) {
  const [typed, setTyped] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const terms = useMemo(() => parseFilter(value, keys, text.filter), [value, keys]);
  const problem = terms.find((term) => term.error);
  const choices = useMemo(() => choicesFor(typed, keys, suggest), [typed, keys, suggest]);
  useEffect(() => setAt(-1), [typed]);

  const put = (next: string) => onChange(next.trim());
  const commit = (words: string) => {
    if (words.trim() === "") return;
    put(`${value} ${words}`);
    setTyped("");
  };
  const choose = (choice: Choice) => {
    if (choice.isWhole) commit(choice.insert);
    else setTyped(choice.insert);
    input.current?.focus();
  };
  const edit = (term: Term) => {
    put(withoutTerm(value, term));
    setTyped(termText(term));
    setOpen(true);
    input.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    const isListed = isOpen && choices.length > 0;
    if (event.key === "ArrowDown" && isListed) setAt((before) => (before + 1) % choices.length);
    else if (event.key === "ArrowUp" && isListed) setAt((before) => (before <= 0 ? choices.length : before) - 1);
    else if (event.key === "Enter") {
      const choice = choices[at];
      if (isListed && choice) choose(choice);
      else {
        commit(typed);
        setOpen(false);
      }
    } else if (event.key === "Tab" && isListed && typed !== "" && !event.shiftKey) {
      const choice = choices[Math.max(0, at)];
      if (!choice) return;
      choose(choice);
    } else if (event.key === "Backspace" && typed === "" && terms.length > 0) {
      edit(terms.at(-1) as Term);
    } else if (event.key === "Escape") {
      if (isOpen) setOpen(false);
      else input.current?.blur();
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  const onType = (words: string) => {
    setOpen(true);
    // A space ends a word that has a value, outside of quotes.
    if (/\s$/.test(words) && /^-?[a-z_.]+:\S/i.test(words) && (words.match(/"/g)?.length ?? 0) % 2 === 0) commit(words);
    else setTyped(words);
  };

  return (
    <div className={styles.wrap}>
      <div ref={box} className={styles.bar} onClick={(event) => event.target === box.current && input.current?.focus()}>
        <Icon name="filter" size={16} className={styles.icon} />
        {terms.map((term, index) => (
          <Chip key={`${index} ${value.slice(term.start, term.end)}`} term={term} onEdit={() => edit(term)} onRemove={() => put(withoutTerm(value, term))} />
        ))}
        <input
          ref={input}
          data-filter
          className={styles.input}
          role="combobox"
          aria-label={label}
          aria-expanded={isOpen && choices.length > 0}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
          aria-invalid={problem ? true : undefined}
          placeholder={terms.length === 0 ? placeholder : ""}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => onType(event.target.value)}
          onKeyDown={onKeyDown}
          onFocus={() => setOpen(true)}
          onClick={() => setOpen(true)}
          onBlur={() => {
            setOpen(false);
            commit(typed);
          }}
        />
        {(terms.length > 0 || typed) && (
          <IconButton
            icon="close"
            size="small"
            label={text.empty.clearFilters}
            onClick={() => {
              setTyped("");
              put("");
              input.current?.focus();
            }}
          />
        )}
        {children}
      </div>
      {problem && (
        <p className={styles.problem} role="alert">
          {problem.error}
        </p>
      )}
      <Popover isOpen={isOpen && choices.length > 0} onClose={() => setOpen(false)} anchor={box} label={label} keepsFocus role="listbox" id={id} className={styles.choices}>
        {choices.map((choice, index) => (
          <div
            key={choice.insert}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            className={classes(styles.choice, index === at && styles.current)}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => choose(choice)}
          >
            <span className="mono">{choice.label}</span>
            {choice.hint && <span className={styles.hint}>{choice.hint}</span>}
          </div>
        ))}
      </Popover>
    </div>
  );
}

function choicesFor(typed: string, keys: readonly FilterKey[], suggest: Properties["suggest"]): Choice[] {
  const isNegated = typed.startsWith("-");
  const sign = isNegated ? "-" : "";
  const bare = isNegated ? typed.slice(1) : typed;
  const colon = bare.indexOf(":");
  if (colon < 0)
    return keys
      .filter((key) => key.name.startsWith(bare.toLowerCase()) && (!isNegated || key.isNegatable))
      .map((key) => ({ insert: `${sign}${key.name}${key.hasPath ? "." : ":"}`, label: `${sign}${key.name}${key.hasPath ? ".…" : ""}:`, hint: key.hint, isWhole: false }));
  const name = bare.slice(0, colon);
  const key = keys.find((one) => one.name === name);
  if (!key) return [];
  const values = bare.slice(colon + 1);
  const comma = key.isMany ? values.lastIndexOf(",") : -1;
  const before = values.slice(0, comma + 1);
  const part = values.slice(comma + 1);
  return suggest(name, part)
    .filter((one) => !before.split(",").includes(one.value))
    .slice(0, 12)
    .map((one) => {
      const written = termText({ key: name, values: [one.value] }).slice(name.length + 1);
      return { insert: `${sign}${name}:${before}${written}`, label: one.value, hint: one.hint, isWhole: true };
    });
}

function Chip({ term, onEdit, onRemove }: { term: Term; onEdit: () => void; onRemove: () => void }) {
  const tip = useTip(term.error);
  const words = termText(term);
  const colon = term.key ? words.indexOf(":") + 1 : 0;
  return (
    <span className={classes(styles.chip, term.error && styles.wrong)}>
      <button type="button" className={styles.word} onClick={onEdit} aria-label={`${text.filter.edit} ${words}`} {...tip}>
        {colon > 0 && <span className={styles.key}>{words.slice(0, colon)}</span>}
        <span>{words.slice(colon)}</span>
      </button>
      <button type="button" className={styles.remove} onClick={onRemove} aria-label={`${text.filter.remove} ${words}`}>
        <Icon name="close" size={12} strokeWidth={2.2} />
      </button>
    </span>
  );
}
