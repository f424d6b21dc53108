import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { EmptyState } from "~/components/EmptyState";
import { Panel } from "~/components/Panel";
import { Segments } from "~/components/Segments";
import { type Column, FreshButton, SelectionBar, Table } from "~/components/Table";
import { Time } from "~/components/Time";
import { useKeysetList } from "~/live/useKeysetList";
import { words } from "~/texts/dead";
import { errorText } from "../runs/RunCells";
import { type Letter, letterPage } from "./queries";
import styles from "./dead.module.css";

const { letterColumns: columns } = words;
const COLUMNS: Column<Letter>[] = [
  {
    id: "run",
    label: columns.run,
    width: "minmax(9rem, 16rem)",
    card: "title",
    isFixed: true,
    cell: (letter) => (
      <Link to={`/runs/${letter.id}` as never} data-link className={styles.message}>
        {letter.name ?? letter.task}
      </Link>
    ),
  },
  { id: "error", label: columns.error, width: "minmax(12rem, 1fr)", from: 620, cell: (letter) => <span className="quiet">{errorText(letter.error).split("\n")[0]}</span> },
  { id: "attempt", label: columns.attempt, width: "4.5rem", align: "end", from: 900, card: "none", cell: (letter) => letter.attempt },
  { id: "became", label: columns.became, width: "7rem", from: 760, card: "none", cell: (letter) => (letter.rerun_as ? <Link to={`/runs/${letter.rerun_as}` as never} className="mono">{`…${letter.rerun_as.slice(-8)}`}</Link> : <span className="quiet">{words.notReplayed}</span>) },
  { id: "failed", label: columns.failed, width: "6.5rem", align: "end", card: "side", cell: (letter) => <Time at={letter.finished_at} /> },
];

/** The failures of a group, one by one. Some can be selected and replayed. */
export function LetterList({ group, onReplay }: { group: string; onReplay: (ids: string[]) => void }) {
  const [which, setWhich] = useState("open");
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const mayOperate = useMay("operate");
  const isAll = which === "all";
  const list = useKeysetList<Letter>({ listKey: `${group} ${which}`, fetchPage: (after, signal) => letterPage(group, isAll, after, signal), idOf: (letter) => letter.id, every: 2_000 });
  const shown = useMemo(() => (isAll ? COLUMNS : COLUMNS.filter((column) => column.id !== "became")), [isAll]);
  const selection = mayOperate ? { ids: selected, change: setSelected } : undefined;
  return (
    <Panel
      className={styles.part}
      title={words.letters}
      hint={mayOperate ? words.lettersHint : undefined}
      isFlush
      actions={
        <Segments
          label={words.which.label}
          value={which}
          options={[
            { value: "open", label: words.which.open },
            { value: "all", label: words.which.all },
          ]}
          onChange={(value) => {
            setWhich(value);
            setSelected(new Set());
          }}
        />
      }
    >
      <FreshButton count={list.freshCount} onShow={list.showFresh} />
      <Table<Letter>
        label={words.letters}
        name="dead-letters"
        rows={list.items}
        columns={shown}
        idOf={(letter) => letter.id}
        nameOf={(letter) => letter.name ?? letter.task}
        linkOf={(letter) => ({ to: `/runs/${letter.id}` })}
        selection={selection}
        isLoading={list.isLoading}
        hasMore={list.hasMore}
        isLoadingMore={list.isLoadingMore}
        onMore={list.loadMore}
        onVisible={list.setVisible}
        error={list.error}
        onRetry={list.reload}
        empty={
          <EmptyState icon="check" title={words.noLetters}>
            <p>{words.noLettersHint}</p>
          </EmptyState>
        }
      />
      {selection && (
        <SelectionBar selection={selection}>
          <Button
            size="small"
            kind="primary"
            icon="rerun"
            onClick={() => {
              onReplay([...selected]);
              setSelected(new Set());
            }}
          >
            {words.replaySome}
          </Button>
        </SelectionBar>
      )}
    </Panel>
  );
}
