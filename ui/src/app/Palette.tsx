import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { SearchHit } from "~/api/schema";
import { classes } from "~/components/classes";
import { Icon, type IconName } from "~/components/Icon";
import { text } from "~/texts/en";
import { pageActions } from "./keys";
import { overlayStart } from "./overlayState";
import { NAVIGATION } from "./pages";
import styles from "./Palette.module.css";

interface Choice {
  group: string;
  label: string;
  hint?: string;
  icon: IconName;
  run: () => void;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const KINDS: Record<string, { icon: IconName; to: (id: string, name: string | null) => string; group: string }> = {
  job: { icon: "jobs", to: (_id, name) => `/jobs/${encodeURIComponent(name ?? _id)}`, group: text.palette.jobs },
  run: { icon: "runs", to: (id) => `/runs/${id}`, group: text.palette.runs },
  workflow: { icon: "workflows", to: (id) => `/workflows/${id}`, group: text.nav.workflows },
  queue: { icon: "queues", to: (id) => `/queues/${encodeURIComponent(id)}`, group: text.palette.queues },
  worker: { icon: "workers", to: (id) => `/workers/${id}`, group: text.nav.workers },
  task: { icon: "bolt", to: (id) => `/tasks/${encodeURIComponent(id)}`, group: text.palette.tasks },
  calendar: { icon: "calendars", to: (id) => `/calendars/${encodeURIComponent(id)}`, group: text.nav.calendars },
};

const search = async (words: string): Promise<SearchHit[]> => (await data(client.GET("/v1/search", { params: { query: { q: words.slice(0, 200) } } }))).items;

export function Palette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [words, setWords] = useState(overlayStart);
  const [at, setAt] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const actions = useMemo(pageActions, []);
  const asked = words.trim();
  const isSearch = asked.length > 1 && !/^[>#?]/.test(asked) && !UUID.test(asked);
  const { data: hits } = useQuery({ queryKey: key("search", asked), queryFn: () => search(asked), enabled: isSearch, placeholderData: (before) => before, staleTime: 10_000 });

  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => setAt(0), [words]);

  const go = (to: string, query: Record<string, string> = {}) => () => void navigate({ to: to as never, search: query as never });
  const choices = useMemo<Choice[]>(() => {
    const lower = asked.toLowerCase();
    const fits = (label: string) => label.toLowerCase().includes(lower);
    const offered: Choice[] = actions.map((one) => ({ group: text.palette.actions, label: one.label ?? "", icon: one.icon ?? "bolt", hint: one.key, run: one.run }));
    if (asked.startsWith(">")) {
      const rest = asked.slice(1).trim().toLowerCase();
      return offered.filter((one) => one.label.toLowerCase().includes(rest));
    }
    if (asked.startsWith("#")) {
      const tag = asked.slice(1).trim();
      return tag ? [{ group: text.palette.runs, label: text.palette.tag(tag), icon: "tag", run: go("/runs", { q: `tag:${tag}` }) }] : [];
    }
    if (asked.startsWith("?")) {
      const reference = asked.slice(1).trim();
      return reference ? [{ group: text.palette.runs, label: text.palette.whyRun(reference), icon: "help", run: go(`/why/${encodeURIComponent(reference)}`) }] : [];
    }
    if (UUID.test(asked))
      return [
        { group: text.palette.runs, label: text.palette.openRun(asked), icon: "runs", run: go(`/runs/${asked}`) },
        { group: text.palette.runs, label: text.palette.whyRun(asked), icon: "help", run: go(`/runs/${asked}/why`) },
      ];
    const pages: Choice[] = NAVIGATION.filter((place) => fits(place.label)).map((place) => ({
      group: text.palette.pages,
      label: place.label,
      icon: place.icon,
      hint: place.go && `g ${place.go}`,
      run: go(place.to),
    }));
    const found: Choice[] = (isSearch ? (hits ?? []) : []).flatMap((hit) => {
      const kind = KINDS[hit.kind];
      return kind ? [{ group: kind.group, label: hit.name ?? hit.id, hint: hit.hint ?? undefined, icon: kind.icon, run: go(kind.to(hit.id, hit.name)) }] : [];
    });
    const inRuns: Choice[] = asked ? [{ group: text.palette.runs, label: text.palette.searchRuns(asked), icon: "search", run: go("/runs", { q: asked }) }] : [];
    return [...pages, ...found, ...offered.filter((one) => asked && fits(one.label)), ...inRuns];
  }, [asked, hits, actions, isSearch]);

  useEffect(() => list.current?.querySelector("[aria-selected='true']")?.scrollIntoView({ block: "nearest" }), [at]);

  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    onClose();
    choice.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt((before) => (before + 1) % Math.max(1, choices.length));
    else if (event.key === "ArrowUp") setAt((before) => (before - 1 + choices.length) % Math.max(1, choices.length));
    else if (event.key === "Enter") choose(choices[at]);
    else return;
    event.preventDefault();
  };

  return (
    <dialog ref={dialog} className={styles.palette} aria-label={text.palette.label} onClose={onClose} onPointerDown={(event) => event.target === dialog.current && onClose()}>
      <div className={styles.field}>
        <Icon name="search" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-choices"
          aria-activedescendant={choices[at] ? `palette-${at}` : undefined}
          aria-label={text.palette.label}
          placeholder={text.palette.placeholder}
          autoComplete="off"
          spellCheck={false}
          value={words}
          onChange={(event) => setWords(event.target.value)}
          onKeyDown={onKeyDown}
        />
      </div>
      <div ref={list} id="palette-choices" role="listbox" aria-label={text.palette.label} className={styles.choices}>
        {choices.map((choice, index) => (
          <div key={index} role="presentation">
            {choice.group !== choices[index - 1]?.group && (
              <p className={styles.group} role="presentation">
                {choice.group}
              </p>
            )}
            <div
              id={`palette-${index}`}
              role="option"
              aria-selected={index === at}
              className={classes(styles.choice, index === at && styles.current)}
              onPointerMove={() => setAt(index)}
              onClick={() => choose(choice)}
            >
              <Icon name={choice.icon} size={18} />
              <span className="truncate">{choice.label}</span>
              {choice.hint && <span className={styles.hint}>{choice.hint}</span>}
            </div>
          </div>
        ))}
      </div>
      {choices.length === 0 && <p className={styles.empty}>{text.palette.empty}</p>}
      <p className={styles.foot}>{text.palette.hints}</p>
    </dialog>
  );
}
