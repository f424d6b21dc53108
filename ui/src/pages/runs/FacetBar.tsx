import { useRef, useState } from "react";
import { Button } from "~/components/Button";
import { classes } from "~/components/classes";
import { Icon } from "~/components/Icon";
import { Popover } from "~/components/Popover";
import { Segments } from "~/components/Segments";
import { StateBadge } from "~/components/StateBadge";
import { type Term, valuesOf } from "~/model/filter";
import { compact } from "~/model/numbers";
import { LIVE } from "~/model/states";
import { text } from "~/texts/en";
import { type FacetName, type Facets, type FacetValue } from "./queries";
import styles from "./FacetBar.module.css";

const UNFINISHED = [...LIVE];
const QUICK: { label: string; states: string[] }[] = [
  { label: text.runs.all, states: [] },
  { label: text.runs.live, states: UNFINISHED },
  { label: text.states.failed, states: ["failed"] },
  { label: text.states.succeeded, states: ["succeeded"] },
];
const MENUS: FacetName[] = ["state", "task", "queue", "job", "tag", "worker", "error"];

interface Properties {
  facets: Facets | undefined;
  terms: readonly Term[];
  onSet: (name: string, values: string[]) => void;
}

/** The quick choices of a state, and what else the runs have in common, with counts. */
export function FacetBar({ facets, terms, onSet }: Properties) {
  const states = valuesOf(terms, "state");
  const isSame = (wanted: string[]) => wanted.length === states.length && wanted.every((state) => states.includes(state));
  return (
    <div className={styles.bar}>
      <Segments
        label={text.runs.columns.state}
        value={QUICK.find((one) => isSame(one.states))?.label ?? ""}
        options={QUICK.map((one) => ({ value: one.label, label: one.label }))}
        onChange={(label) => onSet("state", QUICK.find((one) => one.label === label)?.states ?? [])}
      />
      {facets && (
        <div className={styles.menus}>
          {MENUS.filter((name) => facets[name].length > 0 || valuesOf(terms, name).length > 0).map((name) => (
            <FacetMenu key={name} name={name} values={facets[name]} chosen={valuesOf(terms, name)} onSet={(values) => onSet(name, values)} />
          ))}
        </div>
      )}
    </div>
  );
}

function FacetMenu({ name, values, chosen, onSet }: { name: FacetName; values: FacetValue[]; chosen: string[]; onSet: (values: string[]) => void }) {
  const [isOpen, setOpen] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const most = Math.max(1, ...values.map((one) => one.count));
  const isMany = name !== "job" && name !== "error";
  const toggle = (value: string) => {
    if (chosen.includes(value)) onSet(chosen.filter((one) => one !== value));
    else onSet(isMany ? [...chosen, value] : [value]);
  };
  return (
    <>
      <Button ref={anchor} kind="quiet" size="small" aria-expanded={isOpen} aria-haspopup="dialog" className={classes(chosen.length > 0 && styles.active)} onClick={() => setOpen(!isOpen)}>
        {text.runs.facets[name]}
        <Icon name="down" size={12} />
      </Button>
      <Popover isOpen={isOpen} onClose={() => setOpen(false)} anchor={anchor} label={text.runs.facets[name]} className={styles.popover}>
        {values.map((one) => {
          const value = name === "worker" ? one.value : one.name;
          return (
            <button key={one.value} type="button" role="checkbox" aria-checked={chosen.includes(value)} className={styles.value} onClick={() => toggle(value)}>
              <Icon name="check" size={14} className={chosen.includes(value) ? styles.ticked : styles.unticked} />
              <span className={styles.name}>{name === "state" ? <StateBadge state={one.name} isQuiet explain={false} /> : one.name}</span>
              <span className={styles.amount}>
                <span className={styles.share} style={{ inlineSize: `${(one.count / most) * 100}%` }} />
              </span>
              <span className={styles.count}>{compact(one.count)}</span>
            </button>
          );
        })}
      </Popover>
    </>
  );
}
