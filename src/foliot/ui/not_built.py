"""The page that stands in for the UI until it is built."""

from __future__ import annotations

NOT_BUILT = b"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Foliot</title></head>
<body>
<h1>Foliot is running. Its web UI is not built yet.</h1>
<p>To get it, install Node.js 20.19 or newer, run <code>make ui</code> in the clone of Foliot,
and load this page again.</p>
<p>Packages of Foliot contain the UI. Everything else works: see <a href="/docs">the HTTP API</a>.</p>
</body>
</html>
"""
