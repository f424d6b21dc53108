import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { IconButton } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { EmptyState, NothingFits } from "~/components/EmptyState";
import { PageHeader } from "~/components/PageHeader";
import { SearchField } from "~/components/SearchField";
import { Segments } from "~/components/Segments";
import { type Column, FreshButton, Table } from "~/components/Table";
import { Duration, Time } from "~/components/Time";
import { useKeysetList } from "~/live/useKeysetList";
import { text } from "~/texts/en";
import { messageOf, nameOfWorkflow, WorkflowProgress, WorkflowState } from "./cells";
import { EXAMPLE } from "./commands";
import { type Workflow, workflowPage } from "./queries";
import styles from "./WorkflowsPage.module.css";

const { workflows: words } = text;
const STATUSES = ["", "running", "completed", "failed", "cancelled"];

export function WorkflowsPage() {
  const { q = "", state = "" } = useSearch({ strict: false }) as { q?: string; state?: string };
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const list = useKeysetList<Workflow>({
    listKey: `workflows ${state} ${q}`,
    fetchPage: (after, signal) => workflowPage({ ...(state ? { state } : {}), ...(q ? { name: q } : {}) }, after, signal),
    idOf: (workflow) => workflow.id,
  });
  const columns: Column<Workflow>[] = [
    { id: "state", label: words.columns.state, width: "7.5rem", card: "side", cell: (one) => <WorkflowState workflow={one} /> },
    {
      id: "name",
      label: words.columns.name,
      width: "minmax(11rem, 1.2fr)",
      card: "title",
      isFixed: true,
      cell: (one) => (
        <span className={styles.name}>
          <Link to={`/workflows/${one.id}` as never} data-link className={styles.link}>
            {nameOfWorkflow(one)}
          </Link>
          {one.state === "failed" && one.error ? <span className={styles.error}>{messageOf(one.error)}</span> : one.job_id && <span className="quiet">{words.scheduled}</span>}
        </span>
      ),
    },
    { id: "progress", label: words.columns.progress, width: "minmax(11rem, 1fr)", cell: (one) => <WorkflowProgress workflow={one} /> },
    { id: "started", label: words.columns.started, width: "8rem", align: "end", cell: (one) => <Time at={one.created_at} />, from: 640 },
    { id: "took", label: words.columns.took, width: "6.5rem", align: "end", cell: (one) => <Duration since={one.created_at} until={one.finished_at} /> },
    {
      id: "grid",
      label: <span className="visually-hidden">{words.allRuns}</span>,
      width: "2.5rem",
      align: "end",
      card: "none",
      cell: (one) => one.name && <IconButton icon="columns" size="small" label={words.allRunsOf(one.name)} onClick={() => void navigate({ to: `/workflows/by-name/${encodeURIComponent(one.name ?? "")}` as never })} />,
      from: 640,
    },
  ];
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} />
      <div className={styles.filters}>
        <Segments label={words.columns.state} value={state} options={STATUSES.map((value) => ({ value, label: words.statuses[value] ?? value }))} onChange={(value) => set({ state: value || undefined })} />
        <SearchField label={words.search} placeholder={words.search} value={q} onChange={(value) => set({ q: value || undefined })} />
      </div>
      <FreshButton count={list.freshCount} onShow={list.showFresh} />
      <Table
        label={words.title}
        name="workflows"
        rows={list.items}
        columns={columns}
        idOf={(one) => one.id}
        nameOf={nameOfWorkflow}
        linkOf={(one) => ({ to: `/workflows/${one.id}` })}
        isLoading={list.isLoading}
        hasMore={list.hasMore}
        isLoadingMore={list.isLoadingMore}
        onMore={list.loadMore}
        onVisible={list.setVisible}
        error={list.error}
        onRetry={list.reload}
        toneOf={(one) => (one.state === "cancelled" ? "quiet" : undefined)}
        empty={
          q || state ? (
            <NothingFits what={words.what} onClear={() => set({ q: undefined, state: undefined })} />
          ) : (
            <EmptyState icon="workflows" title={words.emptyTitle}>
              <p>{words.emptyHint}</p>
              <div className={styles.command}>
                <CopyCommand commands={EXAMPLE()} />
              </div>
            </EmptyState>
          )
        }
      />
    </>
  );
}
