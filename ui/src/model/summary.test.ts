import { expect, test } from "vitest";
import { withSubject } from "./summary";

test.each([
  ["waits for a signal", "it waits for a signal"],
  ["has been due since noon", "it has been due since noon"],
  ["is not due until noon", "it is not due until noon"],
  ["attempt 3 is not due until noon", "attempt 3 is not due until noon"],
  ["key 'printer': 1 of 1 places are taken", "key 'printer': 1 of 1 places are taken"],
  ["no live worker serves the queue 'gpu'", "no live worker serves the queue 'gpu'"],
  ["it may start at any moment", "it may start at any moment"],
])("%s", (summary, told) => expect(withSubject(summary)).toBe(told));
