/** A site to check: `npm run site -- PORT`. One link leads nowhere, and the archive wants to be asked twice. */

import { createServer } from "node:http";

const PAGES: Record<string, string> = {
  "/": '<a href="/news">News</a> <a href="/archive">Archive</a> <a href="mailto:us@example.org">Write to us</a>',
  "/news": '<a href="/">Home</a> <a href="/news/1#top">The first</a> <a href="/news/2">The second</a>',
  "/news/1": '<a href="/news">News</a>',
  "/archive": '<a href="/">Home</a> <a href="/news/1">The first</a>',
};
let isBusy = true;

const site = createServer((request, response) => {
  const path = request.url ?? "/";
  const page = PAGES[path];
  if (path === "/archive" && request.method === "GET" && isBusy) {
    isBusy = false;
    response.writeHead(429, { "Retry-After": "1" }).end();
  } else if (page === undefined) {
    response.writeHead(404).end();
  } else {
    response.writeHead(200, { "Content-Type": "text/html" }).end(page);
  }
});
site.listen(Number(process.argv[2] ?? 8080), "127.0.0.1");
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => site.close());
