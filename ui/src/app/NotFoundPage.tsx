import { Link } from "@tanstack/react-router";
import { EmptyState } from "~/components/EmptyState";
import { text } from "~/texts/en";

export function NotFoundPage() {
  return (
    <EmptyState level={1} icon="search" title={text.empty.notFound(text.empty.thisPage)}>
      <p>
        <Link to={"/" as never}>{text.nav.overview}</Link>
      </p>
    </EmptyState>
  );
}
