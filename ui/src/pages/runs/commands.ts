import { PREFIX } from "~/api/client";
import { ENDED } from "~/model/states";
import { text } from "~/texts/en";
import type { WholeRun } from "./queries";

interface Group {
  title: string;
  commands: { label: string; command: string }[];
}

/** An argument as a shell takes it. */
export function shellWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function curl(method: string, path: string, body?: unknown): string {
  const parts = ["curl", ...(method === "GET" ? [] : ["-X", method]), shellWord(`${location.origin}${PREFIX}${path}`)];
  if (body !== undefined) parts.push("-H 'Content-Type: application/json'", "-d", shellWord(JSON.stringify(body)));
  return parts.join(" ");
}

export function commandsOf(run: WholeRun): Group[] {
  const pair = (title: string, foliot: string, method: string, path: string): Group => ({
    title,
    commands: [
      { label: "foliot", command: foliot },
      { label: "curl", command: curl(method, path) },
    ],
  });
  return [
    pair(text.run.commands.show, `foliot runs show ${run.id}`, "GET", `/v1/runs/${run.id}`),
    pair(text.run.commands.logs, `foliot logs -f ${run.id}`, "GET", `/v1/runs/${run.id}/logs`),
    pair(text.run.commands.why, `foliot explain ${run.id}`, "GET", `/v1/explain/${run.id}`),
    ENDED.has(run.state)
      ? pair(text.run.rerun, `foliot rerun ${run.id}`, "POST", `/v1/runs/${run.id}/rerun`)
      : pair(text.run.cancel, `foliot cancel ${run.id}`, "POST", `/v1/runs/${run.id}/cancel`),
  ];
}
