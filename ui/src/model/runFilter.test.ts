import { describe, expect, it } from "vitest";
import { text } from "~/texts/en";
import { parseFilter } from "./filter";
import { runFilterKeys, runQuery } from "./runFilter";

const KEYS = runFilterKeys({ ...text.filter, keys: text.runs.keys });
const query = (words: string) => runQuery(parseFilter(words, KEYS, text.filter));

describe("runQuery", () => {
  it("gives each word of the filter language its parameter", () => {
    expect(query('state:failed,lost queue:mail task:send_* tag:sale -tag:test duration:>30s attempt:>1 worker:w-3 error:"timed out" since:2h job:nightly payload.customer_id:7 free text')).toEqual({
      state: "failed,lost", queue: "mail", task: "send_*", tag: "sale", not_tag: "test", duration: ">30s", attempt: ">1", worker: "w-3",
      error: "timed out", since: "2h", job: "nightly", payload: ["customer_id:7"], text: "free text",
    });
  });
  it.each(["state:sleepy", "duration:long", "attempt:many", "since:yesterday", "-job:nightly", "until:2026-13-45T00:00:00Z"])("leaves out %s, which is wrong", (words) => expect(query(words)).toEqual({}));
  it.each(["duration:1m..5m", "duration:<500ms", "duration:30", "attempt:1..3", "priority:-5", "since:2026-11-18T08:00:00Z", "since:1h30m"])("takes %s", (words) => expect(Object.keys(query(words))).toHaveLength(1));
});
