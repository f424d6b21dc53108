import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { asApiError } from "~/api/problems";
import { key } from "~/api/queries";
import { useSession } from "~/api/session";
import type { TokenShown } from "~/api/schema";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { AskDialog, Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { problemText } from "~/components/ErrorNotice";
import { Checkbox, SelectField, TextField } from "~/components/Field";
import { type Column, Table } from "~/components/Table";
import { Time } from "~/components/Time";
import { toast } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { State } from "./State";
import styles from "./settings.module.css";
import { words } from "./texts";

const { tokens } = words;
const TONES = { active: "good", expired: "notice", revoked: "quiet" } as const;

export function TokensTab() {
  const query = useQuery({ queryKey: key("tokens"), queryFn: async () => (await data(client.GET("/v1/tokens"))).items });
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  const [revoking, setRevoking] = useState<TokenShown | null>(null);
  const [isAll, setAll] = useState(false);
  useLiveRefresh(() => void query.refetch(), { every: 5_000 });
  if (query.error && !query.data) return <Unavailable level={2} error={query.error} onRetry={() => void query.refetch()} />;
  const rows = (query.data ?? []).filter((token) => isAll || token.status === "active");
  const hasOld = (query.data ?? []).some((token) => token.status !== "active");
  const columns: Column<TokenShown>[] = [
    { id: "name", label: tokens.name, width: "minmax(9rem, 1.2fr)", card: "title", isFixed: true, cell: (token) => token.name },
    { id: "status", label: words.health.state, width: "7rem", card: "side", cell: (token) => <State tone={TONES[token.status]}>{tokens.status[token.status]}</State> },
    { id: "role", label: tokens.role, width: "6.5rem", cell: (token) => token.role },
    { id: "namespace", label: tokens.namespace, width: "minmax(7rem, 0.8fr)", cell: (token) => (token.namespace === "*" ? tokens.everywhere : token.namespace) },
    { id: "used", label: tokens.lastUse, width: "8rem", align: "end", isLabelled: true, cell: (token) => (token.last_used_at ? <Time at={token.last_used_at} /> : <span className="quiet">{tokens.neverUsed}</span>) },
    { id: "expires", label: tokens.expiry, width: "8rem", align: "end", isLabelled: true, cell: (token) => (token.expires_at ? <Time at={token.expires_at} /> : tokens.noExpiry) },
    { id: "by", label: tokens.by, width: "7rem", cell: (token) => <span className="quiet">{token.created_by}</span>, from: 1000, card: "none" },
    {
      id: "revoke",
      label: <span className="visually-hidden">{tokens.revoke}</span>,
      width: "6rem",
      align: "end",
      isFixed: true,
      cell: (token) =>
        token.status !== "revoked" && (
          <Button size="small" kind="quiet" aria-label={`${tokens.revoke} ${token.name}`} onClick={() => setRevoking(token)}>
            {tokens.revoke}
          </Button>
        ),
    },
  ];
  return (
    <>
      <div className={styles.bar}>
        <p className={styles.lead}>{tokens.hint}</p>
        {hasOld && <Checkbox label={tokens.showAll} checked={isAll} onChange={(event) => setAll(event.target.checked)} />}
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          {tokens.create}
        </Button>
      </div>
      <Table
        label={words.tabs.tokens}
        name="tokens"
        rows={rows}
        columns={columns}
        idOf={(token) => token.id}
        nameOf={(token) => token.name}
        toneOf={(token) => (token.status === "active" ? undefined : "quiet")}
        isLoading={query.isPending}
        empty={
          <EmptyState icon="lock" title={tokens.empty}>
            <p>{tokens.emptyHint}</p>
          </EmptyState>
        }
      />
      {isMaking && (
        <NewToken
          onClose={() => setMaking(false)}
          onMade={(token) => {
            setMaking(false);
            setMade(token);
            void query.refetch();
          }}
        />
      )}
      {made && <Secret made={made} onClose={() => setMade(null)} />}
      {revoking && <Revoke token={revoking} onClose={() => setRevoking(null)} onDone={() => void query.refetch()} />}
    </>
  );
}

function NewToken({ onClose, onMade }: { onClose: () => void; onMade: (token: { name: string; token: string }) => void }) {
  const session = useSession();
  const [name, setName] = useState("");
  const [role, setRole] = useState("submitter");
  const [namespace, setNamespace] = useState(session?.namespace ?? "default");
  const [life, setLife] = useState("90d");
  const make = useMutation({
    mutationFn: () => data(client.POST("/v1/tokens", { body: { name: name.trim(), role: role as "viewer", namespace, expires_in: life } })),
    onSuccess: (token) => onMade(token),
  });
  const problem = make.error ? asApiError(make.error) : null;
  const isOfName = problem !== null && (problem.field === "name" || problem.code === "conflict");
  const isOfNamespace = problem?.field === "namespace";
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={() => make.mutate()} title={tokens.createTitle} confirm={tokens.make} isBusy={make.isPending} error={isOfName || isOfNamespace ? undefined : problem}>
      <TextField label={tokens.name} hint={tokens.nameHint} required maxLength={200} autoFocus value={name} error={isOfName ? problemText(problem) : undefined} onChange={(event) => setName(event.target.value)} />
      <SelectField label={tokens.role} value={role} onChange={(event) => setRole(event.target.value)} options={Object.entries(tokens.roles).map(([value, label]) => ({ value, label }))} />
      {session?.scope === "*" ? (
        <TextField label={tokens.namespace} hint={`* ${tokens.everywhere}`} required value={namespace} error={isOfNamespace && problem ? problemText(problem) : undefined} onChange={(event) => setNamespace(event.target.value)} />
      ) : null}
      <SelectField label={tokens.expires} value={life} onChange={(event) => setLife(event.target.value)} options={Object.entries(tokens.lives).map(([value, label]) => ({ value, label }))} />
    </AskDialog>
  );
}

function Secret({ made, onClose }: { made: { name: string; token: string }; onClose: () => void }) {
  return (
    <Dialog
      isOpen
      width="medium"
      onClose={onClose}
      title={tokens.madeTitle(made.name)}
      footer={
        <Button kind="primary" onClick={onClose}>
          {tokens.done}
        </Button>
      }
    >
      <div className={styles.secret}>
        <p>{tokens.made}</p>
        <CopyCommand commands={[{ label: "token", command: made.token }, { label: "shell", command: `export FOLIOT_URL=${location.origin} FOLIOT_TOKEN=${made.token}` }]} />
      </div>
    </Dialog>
  );
}

function Revoke({ token, onClose, onDone }: { token: TokenShown; onClose: () => void; onDone: () => void }) {
  const revoke = useMutation({
    mutationFn: () => data(client.DELETE("/v1/tokens/{reference}", { params: { path: { reference: token.id } } })),
    onSuccess: () => {
      toast({ message: tokens.revoked(token.name) });
      onDone();
      onClose();
    },
  });
  return (
    <AskDialog isOpen isDangerous onClose={onClose} onConfirm={() => revoke.mutate()} title={tokens.revokeTitle(token.name)} confirm={tokens.revoke} isBusy={revoke.isPending} error={revoke.error}>
      <p>{tokens.revokeText}</p>
    </AskDialog>
  );
}
