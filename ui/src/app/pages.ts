import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { PREFIX } from "~/api/client";
import { ApiError } from "~/api/problems";
import type { IconName } from "~/components/Icon";
import { text } from "~/texts/en";
import { rootRoute } from "./root";
import { keeps } from "./search";

type Load = () => Promise<Record<string, ComponentType>>;

/** A page: its path below /ui, its module, the component's name, and the search parameters it understands. */
function page<const Path extends string, Name extends string = never>(path: Path, load: Load, component: string, ...parameters: Name[]) {
  return createRoute({
    getParentRoute: () => rootRoute,
    path,
    validateSearch: keeps<Name>(...parameters),
    component: lazyRouteComponent(told(load) as never, component as never) as never,
  });
}

/** A page that is missing although the server answers is of another version: the router loads the app anew. Without a
 * server that would throw away what is shown, so the error says that instead. */
const told = (load: Load): Load => () =>
  load().catch(async (error: unknown) => {
    const isThere = await fetch(`${PREFIX}/healthz`, { cache: "no-store" }).then((answer) => answer.ok, () => false);
    throw isThere ? error : ApiError.unreachable();
  });

const of = (module: Promise<object>) => module as Promise<Record<string, ComponentType>>;
const runs = () => of(import("~/pages/runs/RunsPage"));
const job = () => of(import("~/pages/jobs/JobPage"));
const run = () => of(import("~/pages/runs/RunPage"));
const settings = () => of(import("~/pages/settings/SettingsPage"));
const workflow = () => of(import("~/pages/workflows/WorkflowPage"));

/** Every page. Pages of one module share a chunk. Add yours here, and in NAVIGATION if it has a place in the rail. */
export const routes = [
  page("/", () => of(import("~/pages/overview/OverviewPage")), "OverviewPage", "range"),
  page("/jobs", () => of(import("~/pages/jobs/JobsPage")), "JobsPage", "q", "status", "tag", "deleted"),
  page("/jobs/new", () => of(import("~/pages/schedule/NewJobPage")), "NewJobPage"),
  page("/jobs/$reference", job, "JobPage", "span", "until"),
  page("/jobs/$reference/ticks", job, "JobPage", "span", "until"),
  page("/jobs/$reference/runs", job, "JobPage"),
  page("/jobs/$reference/schedule", job, "JobPage", "edit"),
  page("/jobs/$reference/versions", job, "JobPage"),
  page("/runs", runs, "RunsPage", "q", "peek"),
  page("/runs/compare", () => of(import("~/pages/runs/ComparePage")), "ComparePage", "left", "right"),
  page("/runs/$id", run, "RunPage", "attempt", "line"),
  page("/runs/$id/log", run, "RunPage", "attempt", "line"),
  page("/runs/$id/why", run, "RunPage"),
  page("/runs/$id/data", run, "RunPage"),
  page("/runs/$id/attempts", run, "RunPage"),
  page("/settings", settings, "SettingsPage"),
  page("/settings/health", settings, "SettingsPage"),
  page("/settings/database", settings, "SettingsPage"),
  page("/settings/tokens", settings, "SettingsPage"),
  page("/settings/namespaces", settings, "SettingsPage"),
  page("/settings/audit", settings, "SettingsPage", "actor", "action", "target", "denied", "since"),
  page("/settings/configuration", settings, "SettingsPage", "q", "changed"),
  page("/runs/$id/checkpoints", run, "RunPage"),
  page("/workflows", () => of(import("~/pages/workflows/WorkflowsPage")), "WorkflowsPage", "q", "state"),
  page("/workflows/by-name/$name", () => of(import("~/pages/workflows/GridPage")), "GridPage"),
  page("/workflows/$id", workflow, "WorkflowPage", "step", "find", "path", "fold"),
  page("/workflows/$id/graph", workflow, "WorkflowPage", "step", "find", "path", "fold"),
  page("/workflows/$id/gantt", workflow, "WorkflowPage", "from", "to"),
  page("/workflows/$id/steps", workflow, "WorkflowPage", "step", "find"),
  page("/agenda", () => of(import("~/pages/agenda/AgendaPage")), "AgendaPage", "span", "from", "hours", "by", "queue", "tag"),
  page("/queues", () => of(import("~/pages/queues/QueuesPage")), "QueuesPage", "q"),
  page("/queues/$name", () => of(import("~/pages/queues/QueuePage")), "QueuePage", "range"),
  page("/tasks", () => of(import("~/pages/tasks/TasksPage")), "TasksPage", "q", "kind"),
  page("/tasks/$name", () => of(import("~/pages/tasks/TaskPage")), "TaskPage"),
  page("/dead", () => of(import("~/pages/dead/DeadPage")), "DeadPage", "q", "since", "task", "queue", "dismissed"),
  page("/dead/$group", () => of(import("~/pages/dead/DeadGroupPage")), "DeadGroupPage"),
  page("/workers", () => of(import("~/pages/workers/WorkersPage")), "WorkersPage"),
  page("/workers/$id", () => of(import("~/pages/workers/WorkerPage")), "WorkerPage"),
  page("/pauses", () => of(import("~/pages/pauses/PausesPage")), "PausesPage"),
  page("/calendars", () => of(import("~/pages/calendars/CalendarsPage")), "CalendarsPage", "new"),
  page("/calendars/$name", () => of(import("~/pages/calendars/CalendarPage")), "CalendarPage", "edit"),
  page("/alerts", () => of(import("~/pages/alerts/AlertsPage")), "AlertsPage"),
  page("/approvals", () => of(import("~/pages/approvals/ApprovalsPage")), "ApprovalsPage"),
  page("/why/$reference", () => of(import("~/pages/runs/WhyPage")), "WhyPage"),
];

export interface Place {
  to: string;
  label: string;
  icon: IconName;
  /** `g` and this key go there. */
  go?: string;
  /** Whether it is in the phone's bottom bar. */
  isMain?: boolean;
  /** The first of a group. */
  startsGroup?: boolean;
}

export const NAVIGATION: Place[] = [
  { to: "/", label: text.nav.overview, icon: "overview", go: "o", isMain: true },
  { to: "/jobs", label: text.nav.jobs, icon: "jobs", go: "j", isMain: true },
  { to: "/agenda", label: text.nav.agenda, icon: "agenda" },
  { to: "/runs", label: text.nav.runs, icon: "runs", go: "r", isMain: true },
  { to: "/workflows", label: text.nav.workflows, icon: "workflows", go: "w", isMain: true },
  { to: "/queues", label: text.nav.queues, icon: "queues", go: "q" },
  { to: "/tasks", label: text.nav.tasks, icon: "bolt" },
  { to: "/workers", label: text.nav.workers, icon: "workers", go: "k" },
  { to: "/dead", label: text.nav.dead, icon: "dead", go: "d" },
  { to: "/alerts", label: text.nav.alerts, icon: "alerts" },
  { to: "/approvals", label: text.nav.approvals, icon: "approvals" },
  { to: "/calendars", label: text.nav.calendars, icon: "calendars", go: "c" },
  { to: "/pauses", label: text.nav.pauses, icon: "pauses" },
  { to: "/settings", label: text.nav.settings, icon: "settings", startsGroup: true },
];
