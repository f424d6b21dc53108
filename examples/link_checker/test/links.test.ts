import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";

import { brokenness, linksOf } from "../src/links.js";

const server = createServer((request, response) => response.writeHead(request.url === "/there" ? 200 : 404).end());
let address = "";

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => server.close());

test("links are absolute, without fragments, and each is there once", () => {
  const html = '<a href="b#x">b</a> <a class="c" href="/d">d</a> <a href="b">b</a> <a href="mailto:a@b.c">us</a>';
  assert.deepEqual(linksOf(html, "http://example.org/a/"), ["http://example.org/a/b", "http://example.org/d"]);
});

test("a link that can't be parsed is left out", () => {
  assert.deepEqual(linksOf('<a href="http://[">?</a>', "http://example.org/"), []);
});

test("only broken links have a reason", async () => {
  const { signal } = new AbortController();
  assert.equal(await brokenness(`${address}/there`, signal), undefined);
  assert.deepEqual(await brokenness(`${address}/gone`, signal), { link: `${address}/gone`, why: "404 Not Found" });
});

test("a stop is not a broken link", async () => {
  await assert.rejects(brokenness(`${address}/there`, AbortSignal.abort()));
});
