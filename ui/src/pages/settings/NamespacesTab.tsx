import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { client, data } from "~/api/client";
import { key, queryClient } from "~/api/queries";
import { useSession } from "~/api/session";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Unavailable } from "~/components/EmptyState";
import { Panel } from "~/components/Panel";
import { type Column, Table } from "~/components/Table";
import styles from "./settings.module.css";
import { words } from "./texts";

const { namespaces } = words;
type Name = { name: string };

export function NamespacesTab() {
  const session = useSession();
  const navigate = useNavigate();
  const query = useQuery({ queryKey: key("namespaces", "all"), queryFn: async () => (await data(client.GET("/v1/namespaces"))).items });
  if (query.error) return <Unavailable level={2} error={query.error} onRetry={() => void query.refetch()} />;
  const go = (name: string) => {
    queryClient.clear();
    void navigate({ to: "/runs" as never, search: { ns: name } as never });
  };
  const columns: Column<Name>[] = [
    { id: "name", label: namespaces.name, width: "minmax(10rem, 1fr)", card: "title", isFixed: true, cell: (one) => one.name },
    {
      id: "open",
      label: <span className="visually-hidden">{namespaces.open}</span>,
      width: "9rem",
      align: "end",
      card: "side",
      isFixed: true,
      cell: (one) =>
        one.name === session?.namespace ? (
          <span className="quiet">{namespaces.here}</span>
        ) : (
          <Button size="small" aria-label={`${namespaces.open} ${one.name}`} onClick={() => go(one.name)}>
            {namespaces.open}
          </Button>
        ),
    },
  ];
  return (
    <div className={styles.stack}>
      <p className={styles.lead}>{namespaces.hint}</p>
      <Table label={words.tabs.namespaces} name="namespaces" rows={query.data ?? []} columns={columns} idOf={(one) => one.name} isLoading={query.isPending} />
      <Panel hint={namespaces.create} title={namespaces.createTitle} isFlush>
        <CopyCommand commands={[{ label: "foliot", command: "foliot token create ann --role operator --namespace team" }, { label: "curl", command: `curl -H 'Foliot-Namespace: team' ${location.origin}/v1/runs` }]} />
      </Panel>
    </div>
  );
}
