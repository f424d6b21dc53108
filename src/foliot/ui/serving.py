"""Serves the UI below `/ui/`: one page for all its URLs, and files that a browser may keep forever."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from foliot.config import Config
from foliot.errors import NotFound
from foliot.ui.files import Asset, Files
from foliot.ui.not_built import NOT_BUILT

POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types foliot",
))  # fmt: skip
FOREVER = "public, max-age=31536000, immutable"


def install(app: FastAPI, config: Config, files: Files | None = None) -> None:
    """Adds the UI's URLs, unless the setting `ui` is off."""
    if config.ui == "off":
        return
    pages = Pages(files or Files(prefix=config.ui_path_prefix), home=f"{config.ui_path_prefix}/ui/")
    for path, endpoint in (
        ("/", pages.to_the_ui),
        ("/ui", pages.to_the_ui),
        ("/ui/assets/{name:path}", pages.asset),
        ("/ui/THIRD_PARTY.txt", pages.licences),
        ("/ui/{page:path}", pages.page),
    ):
        app.add_route(path, endpoint, include_in_schema=False)


class Pages:
    def __init__(self, files: Files, *, home: str) -> None:
        self._files = files
        self._home = home

    async def page(self, request: Request) -> Response:
        index = self._files.index()
        if index is None:
            return _page(NOT_BUILT, {"Cache-Control": "no-store"}, status=503)
        headers = {"Cache-Control": "no-cache", "ETag": index.etag}
        if _names(request.headers.get("if-none-match", ""), index.etag):
            return Response(status_code=304, headers=headers)
        return _page(index.text, headers)

    async def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        known = self._files.asset(name)
        if known is None:
            raise NotFound(f"the UI has no file {name[:100]!r}; it may have been updated: load the page again")
        return _file(known, request, FOREVER)

    async def licences(self, request: Request) -> Response:
        known = self._files.third_party()
        if known is None:
            raise NotFound("the UI has not been built")
        return _file(known, request, "no-cache")

    async def to_the_ui(self, request: Request) -> Response:
        if request.url.path == "/" and "text/html" not in request.headers.get("accept", ""):
            raise NotFound("nothing is here: the API begins at /v1, its description is /openapi.json")
        return RedirectResponse(self._home, 302)


def _page(text: bytes, headers: dict[str, str], *, status: int = 200) -> Response:
    return Response(text, status, headers | {"Content-Security-Policy": POLICY}, media_type="text/html")


def _file(asset: Asset, request: Request, caching: str) -> Response:
    headers = {"Cache-Control": caching, "Content-Type": asset.kind, "Vary": "Accept-Encoding"}
    accepted = _codings(request.headers.get("accept-encoding", ""))
    for coding, content in asset.encoded.items():
        if coding in accepted:
            return Response(content, headers=headers | {"Content-Encoding": coding})
    return Response(asset.plain, headers=headers)


def _codings(header: str) -> set[str]:
    """The content codings that a client accepts. One with `q=0` is refused."""
    found = set()
    for part in header.lower().split(","):
        coding, _, weight = part.partition(";")
        if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            found.add(coding.strip())
    return found


def _names(header: str, etag: str) -> bool:
    return any(one.strip().removeprefix("W/") in (etag, "*") for one in header.split(","))
