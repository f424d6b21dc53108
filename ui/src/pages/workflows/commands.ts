import { ENDED } from "~/model/states";
import { text } from "~/texts/en";
import { curl, shellWord } from "../runs/commands";
import type { Workflow } from "./queries";

interface Choice {
  label: string;
  command: string;
}

const { commands: words } = text.workflows;

const BOOKS = {
  name: "books",
  steps: [
    { key: "export", command: "echo exported" },
    { key: "check", command: "sleep 2 && echo checked", after: ["export"] },
    { key: "send", command: "echo sent", after: ["check"] },
  ],
};

/** A workflow to try. */
export const EXAMPLE = (): Choice[] => [
  { label: "foliot", command: `echo ${shellWord(JSON.stringify(BOOKS))} | foliot workflows submit -` },
  { label: "curl", command: curl("POST", "/v1/workflows", BOOKS) },
];

const APPROVAL = { name: "refund", command: "echo refunded", signal: { timeout_seconds: 86_400 } };

export const APPROVAL_EXAMPLE = (): Choice[] => [{ label: "curl", command: curl("POST", "/v1/jobs", APPROVAL) }];

export function commandsOf(workflow: Workflow): { title: string; commands: Choice[] }[] {
  const path = `/v1/workflows/${workflow.id}`;
  const pair = (title: string, foliot: string, request: string) => ({ title, commands: [{ label: "foliot", command: foliot }, { label: "curl", command: request }] });
  return [
    pair(words.show, `foliot workflows show ${workflow.id}`, curl("GET", path)),
    ENDED.has(workflow.state)
      ? pair(words.redrive, `foliot workflows redrive ${workflow.id}`, curl("POST", `${path}/redrive`))
      : pair(words.cancel, `foliot workflows cancel ${workflow.id}`, curl("POST", `${path}/cancel`)),
  ];
}

export function signalCommands(id: string): Choice[] {
  return [
    { label: "foliot", command: `foliot signal ${id}\nfoliot signal ${id} --reject --message 'too expensive'` },
    { label: "curl", command: curl("POST", `/v1/runs/${id}/signal`, { approved: true }) },
  ];
}
