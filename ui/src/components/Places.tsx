import { Link } from "@tanstack/react-router";

/** The name of a queue, which leads to its page. */
export function QueueLink({ name, className }: { name: string; className?: string }) {
  return (
    <Link to={`/queues/${encodeURIComponent(name)}` as never} className={className}>
      {name}
    </Link>
  );
}

/** The name of a task, which leads to its page. */
export function TaskLink({ name, className }: { name: string; className?: string }) {
  return (
    <Link to={`/tasks/${encodeURIComponent(name)}` as never} className={className}>
      {name}
    </Link>
  );
}
