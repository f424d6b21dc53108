import { useParams } from "@tanstack/react-router";
import { PageHeader } from "~/components/PageHeader";
import { text } from "~/texts/en";
import { WhyTab } from "./WhyTab";

/** Explains anything by its id or name. */
export function WhyPage() {
  const { reference } = useParams({ strict: false }) as { reference: string };
  return (
    <>
      <PageHeader title={text.palette.whyRun(reference)} />
      <WhyTab reference={reference} />
    </>
  );
}
