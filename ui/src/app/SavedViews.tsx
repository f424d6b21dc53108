import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useState } from "react";
import { client, data } from "~/api/client";
import { key, queryClient } from "~/api/queries";
import type { ViewShown } from "~/api/schema";
import { useMay } from "~/api/session";
import { AskDialog } from "~/components/Dialog";
import { Checkbox, TextField } from "~/components/Field";
import { Menu, type MenuEntry } from "~/components/Menu";
import { toast, toastProblem } from "~/components/Toast";
import { text } from "~/texts/en";
import { parseSearch, stringifySearch } from "./search";

const { views: words } = text;
const viewsKey = () => key("views");
/** What belongs to the person and not to the view. */
const PERSONAL = ["ns", "zone", "peek"];

/** A list's saved views: choose one, save this one, delete one. */
export function SavedViews({ page, path }: { page: string; path: string }) {
  const navigate = useNavigate();
  const mayShare = useMay("operate");
  const search = useRouterState({ select: (state) => state.location.search as Record<string, string> });
  const here = stringifySearch(Object.fromEntries(Object.entries(search).filter(([name]) => !PERSONAL.includes(name)))).replace(/^\?/, "");
  const [isSaving, setSaving] = useState(false);
  const query = useQuery({ queryKey: viewsKey(), queryFn: async () => (await data(client.GET("/v1/views"))).items, staleTime: 30_000 });
  const mine = (query.data ?? []).filter((view) => view.page === page);
  const current = mine.find((view) => view.search === here);
  const remove = useMutation({
    mutationFn: (view: ViewShown) => data(client.DELETE("/v1/views", { params: { query: { page, name: view.name, shared: view.is_shared } } })),
    onSuccess: (_, view) => {
      toast({ message: words.deleted(view.name) });
      void queryClient.invalidateQueries({ queryKey: viewsKey() });
    },
    onError: toastProblem,
  });
  const group = (isShared: boolean): MenuEntry[] => {
    const found = mine.filter((view) => view.is_shared === isShared);
    if (found.length === 0) return [];
    return [
      { heading: isShared ? words.shared : words.mine },
      ...found.map((view) => ({ label: view.name, isChosen: view === current, onSelect: () => void navigate({ to: path as never, search: ((before: Record<string, string>) => ({ ns: before.ns, zone: before.zone, ...parseSearch(view.search) })) as never }) })),
    ];
  };
  const entries: MenuEntry[] = [...group(false), ...group(true)];
  if (entries.length > 0) entries.push("line");
  entries.push({ label: words.save, icon: "plus", blocked: here === "" ? words.nothing : current ? words.saved : null, onSelect: () => setSaving(true) });
  if (current && (!current.is_shared || mayShare)) entries.push({ label: words.remove(current.name), icon: "trash", isDangerous: true, onSelect: () => remove.mutate(current) });
  return (
    <>
      <Menu label={words.title} text={current?.name ?? words.title} kind="plain" entries={entries} />
      {isSaving && <SaveDialog page={page} search={here} mayShare={mayShare} onClose={() => setSaving(false)} />}
    </>
  );
}

function SaveDialog({ page, search, mayShare, onClose }: { page: string; search: string; mayShare: boolean; onClose: () => void }) {
  const [name, setName] = useState("");
  const [isShared, setShared] = useState(false);
  const save = useMutation({
    mutationFn: () => data(client.PUT("/v1/views", { body: { page, name: name.trim(), search, is_shared: isShared } })),
    onSuccess: (view) => {
      toast({ message: words.done(view.name) });
      void queryClient.invalidateQueries({ queryKey: viewsKey() });
      onClose();
    },
  });
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={() => save.mutate()} title={words.saveTitle} confirm={text.save} isBusy={save.isPending} error={save.error}>
      <TextField label={words.name} required maxLength={100} autoFocus value={name} onChange={(event) => setName(event.target.value)} />
      {mayShare && <Checkbox label={words.share} checked={isShared} onChange={(event) => setShared(event.target.checked)} />}
    </AskDialog>
  );
}
