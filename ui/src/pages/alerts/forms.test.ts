import { describe, expect, test } from "vitest";
import { words } from "~/texts/alertForms";
import { words as texts } from "~/texts/alerts";
import { fieldErrors } from "~/texts/fieldErrors";
import { channelCommands, ruleCommands } from "./commands";
import { bodyOf, CHANNELS, CONDITIONS, errorsAt, RULE_FIELDS, shownValues } from "./forms";

const conditionFields = (kind: string) => CONDITIONS.get(kind)?.fields ?? [];
const channelFields = (kind: string) => [...(CHANNELS.get(kind)?.fields ?? []), ...(CHANNELS.get(kind)?.texts ?? [])];
const labelled = (kind: string, name: string) => words.labels[`${kind}.${name}`] ?? words.labels[name];

describe("texts", () => {
  test.each([...CONDITIONS.keys()])("the condition %s, its fields and its scope have words", (kind) => {
    expect(texts.conditions[kind]).toBeTruthy();
    expect(words.conditionHints[kind]).toBeTruthy();
    const names = [...conditionFields(kind), ...(CONDITIONS.get(kind)?.scope ?? [])].map((field) => field.name);
    expect(names.filter((name) => !labelled(kind, name))).toEqual([]);
  });
  test.each([...CHANNELS.keys()])("the channel %s and its fields have words", (kind) => {
    expect(texts.kinds[kind]).toBeTruthy();
    expect(channelFields(kind).map((field) => field.name).filter((name) => !labelled(kind, name))).toEqual([]);
  });
  test("the other fields of a rule have words", () => {
    expect([...RULE_FIELDS.keys()].filter((name) => name !== "channels" && !words.labels[name])).toEqual([]);
  });
});

describe("a form", () => {
  test.each([...CONDITIONS.keys()])("of a new %s shows what the server takes by itself, and sends the same", (kind) => {
    const fields = conditionFields(kind);
    const { body, errors } = bodyOf(fields, shownValues(fields, {}), fieldErrors);
    expect(errors).toEqual(kind === "heartbeat_silent" ? { heartbeat: fieldErrors.missing } : {});
    for (const field of fields) if (field.name in body) expect(body[field.name]).toEqual(field.fallback);
  });
  test("of a stored rule sends it back as it is, with what is turned off", () => {
    const fields = [...RULE_FIELDS.values()];
    const stored = { severity: "critical", channels: ["ops", "pager"], repeat: null, for: "5m", description: "see the wiki", enabled: true };
    expect(bodyOf(fields, shownValues(fields, stored), fieldErrors)).toEqual({ body: stored, errors: {} });
  });
  test("with an emptied field turns off what would be on without it", () => {
    const fields = conditionFields("database");
    const values = { ...shownValues(fields, {}), transaction_age: " " };
    expect(bodyOf(fields, values, fieldErrors).body).toMatchObject({ transaction_age: null, replication_lag: "1m", connections_percent: 90 });
  });
  test("says which fields are wrong", () => {
    const fields = conditionFields("success_rate");
    const { errors } = bodyOf(fields, { below: "101", window: "soon", min_runs: "1.5", each: '"job"' }, fieldErrors);
    expect(errors).toEqual({ below: fieldErrors.tooLarge(100, false), window: fieldErrors.pattern, min_runs: fieldErrors.notAnInteger });
  });
  test("of a channel takes several addresses and keeps the stored secret", () => {
    const fields = channelFields("email");
    const stored = { kind: "email", host: "smtp.example.org", port: null, security: "starttls", username: "me", password: "***", from: "a@example.org", to: ["b@example.org"], title: null, body: null };
    const values = { ...shownValues(fields, stored), to: "b@example.org,  c@example.org\nd@example.org" };
    const { body, errors } = bodyOf(fields, values, fieldErrors);
    expect(errors).toEqual({});
    expect(body).toEqual({ host: "smtp.example.org", security: "starttls", username: "me", password: "***", from: "a@example.org", to: ["b@example.org", "c@example.org", "d@example.org"] });
  });
});

test("an error of the server belongs to its field, without the name in front", () => {
  const problem = { field: "condition.window", detail: "condition.window: too long" };
  expect(errorsAt(problem, "condition.")).toEqual({ window: "too long" });
  expect(errorsAt(problem, "scope.")).toEqual({});
  expect(errorsAt({ field: "to[3]", detail: "to[3]: no address" })).toEqual({ to: "no address" });
  expect(errorsAt(null)).toEqual({});
});

test("a command leaves out what is the default, and never carries a secret", () => {
  globalThis.location = { origin: "http://localhost:8000" } as Location;
  expect(ruleCommands("x", { condition: { kind: "no_worker" }, scope: {}, channels: [], for: null, enabled: true })[0]?.command).toBe(`foliot alerts rules put x '{"condition":{"kind":"no_worker"}}'`);
  const [command] = channelCommands("ops", { kind: "webhook", url: "https://example.org/a b", signing_secret: "whsec_x", authorization: "env:ALERTS_KEY", title: null }, ["signing_secret", "authorization"]);
  expect(command?.command).toBe("foliot alerts channels set ops webhook 'url=https://example.org/a b' signing_secret=- authorization=env:ALERTS_KEY");
});
