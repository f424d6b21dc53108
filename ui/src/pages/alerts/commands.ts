import { curl, shellWord } from "../runs/commands";

type Body = Record<string, unknown>;

/** Without what the server takes by itself. */
const short = (body: Body): Body => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null && JSON.stringify(value) !== "{}" && JSON.stringify(value) !== "[]" && value !== true));

export const RULE_EXAMPLE = [{ label: "foliot", command: `foliot alerts rules put failures '{"condition": {"kind": "run_failed"}, "severity": "critical"}'` }];
export const CHANNEL_EXAMPLE = [{ label: "foliot", command: "foliot alerts channels set ops email host=smtp.example.org from=foliot@example.org to=ops@example.org" }];

export const ruleCommands = (name: string, body: Body) => [
  { label: "foliot", command: `foliot alerts rules put ${shellWord(name)} ${shellWord(JSON.stringify(short(body)))}` },
  { label: "curl", command: curl("PUT", `/v1/alert-rules/${encodeURIComponent(name)}`, body) },
];

/** A secret is never part of a command: `-` asks for it. */
export function channelCommands(name: string, { kind, ...body }: Body, secrets: readonly string[]) {
  const told = Object.entries(body).flatMap(([field, value]) => {
    if (value === null || value === undefined) return [];
    if (secrets.includes(field) && !/^(env|file):/.test(String(value))) return [`${field}=-`];
    return [shellWord(`${field}=${Array.isArray(value) ? value.join(",") : String(value)}`)];
  });
  return [{ label: "foliot", command: ["foliot alerts channels set", shellWord(name), String(kind), ...told].join(" ") }];
}
