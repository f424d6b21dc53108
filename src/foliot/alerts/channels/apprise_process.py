"""The process in which Apprise runs: reads one JSON document from standard input, and writes one as its answer.

Before the answer it writes a line when it begins to send. Until then nothing has left it, so that a process that was
slow to start can be ended and its message sent again.

Apprise and its plugins are large, and a URL can name files and local programs. An audit hook of Python limits what they
do: no connection to an address that is not allowed, however its name was resolved; no other program; no file besides
Python's own. The memory is limited too, since a server may answer without end.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import resource
import socket
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from foliot.outbound.addresses import is_public

MEMORY_MAX_BYTES = 1_500_000_000
FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn")
CONNECTING = ("socket.connect", "socket.sendto", "socket.bind")
READABLE = ("/dev/null", "/dev/urandom", "/etc/ssl", "/etc/pki", "/etc/mime.types", "/usr/share/zoneinfo")
LOCAL = frozenset({"blink1", "dbus", "glib", "gnome", "macosx", "syslog", "windows"})
SHOWN_MAX = 500
SENDS = b"sends\n"


class Refused(OSError):
    """Apprise wanted to do what a channel may not do."""


class Guard:
    """The audit hook. An OSError from it ends what was tried."""

    def __init__(self, *, allows_private: bool, allowed_hosts: Iterable[str]) -> None:
        self._allows_private = allows_private
        self._allowed_hosts = {name.strip().lower().strip("[]") for name in allowed_hosts} - {""}
        self._allowed_addresses = set[str]()
        paths = sysconfig.get_paths()
        roots = [sys.prefix, *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")), *sys.path]
        self._readable = [Path(root).resolve() for root in (*roots, *READABLE) if root]
        self._resolve = socket.getaddrinfo
        self.refusal = ""

    def install(self) -> None:
        socket.getaddrinfo = self._resolved
        sys.addaudithook(self._hook)

    def _resolved(self, host: Any, *rest: Any, **named: Any) -> Any:
        found = self._resolve(host, *rest, **named)
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name.lower().rstrip(".") in self._allowed_hosts:
            self._allowed_addresses.update(str(entry[4][0]) for entry in found)
        return found

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CONNECTING:
            self.check_address(arguments[1])
        elif event in FORBIDDEN:
            raise self._refused("it may not start programs")
        elif event == "open" and isinstance(arguments[0], str | bytes):
            self._check_file(os.fsdecode(arguments[0]))

    def check_address(self, address: Any) -> None:
        text = str(address[0]) if isinstance(address, tuple) else ""
        if self._allows_private and text:
            return
        try:
            if text in self._allowed_addresses or is_public(ipaddress.ip_address(text.partition("%")[0])):
                return
        except ValueError:
            # A name that would be resolved where nobody checks it, or a socket in the file system.
            pass
        raise self._refused(
            f"{text or 'a local socket'} is not a public address; add the host to http_allow_hosts, or set "
            "http_allow_private"
        )

    def _check_file(self, path: str) -> None:
        if not any(Path(path).resolve().is_relative_to(root) for root in self._readable):
            raise self._refused("it may not use files of this machine")

    def _refused(self, why: str) -> Refused:
        self.refusal = why
        return Refused(why)


class Notes(logging.Handler):
    """Keeps the warnings that Apprise logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.lines) < 5:
            self.lines.append(record.getMessage()[:SHOWN_MAX])


def main() -> None:
    asked = msgspec.json.decode(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.buffer.write(msgspec.json.encode(answer_to(asked)))


def answer_to(asked: dict[str, Any]) -> dict[str, Any]:
    import apprise
    import requests
    from apprise import common, plugins

    del common, plugins
    # No redirect is followed: it could lead to another host.
    requests.Session.get_redirect_target = _no_redirect  # type: ignore[method-assign,assignment]
    notes = Notes()
    logger = logging.getLogger("apprise")
    logger.addHandler(notes)
    logger.propagate = False
    asset = apprise.AppriseAsset(secure_logging=True, storage_mode="memory", async_mode=False)
    guard = Guard(allows_private=asked["allows_private"], allowed_hosts=asked["allowed_hosts"].split(","))
    # Loads all plugins, before files are forbidden.
    apprise.Apprise(asset=asset).details()
    guard.install()
    try:
        service = apprise.Apprise.instantiate(asked["url"], asset=asset, suppress_exceptions=True)
    except Exception as error:
        return _failure(f"{type(error).__name__}: {error}", is_permanent=True)
    if guard.refusal:
        return _failure(guard.refusal, is_permanent=True)
    if service is None:
        return _failure("Apprise does not understand it; see its list of services", is_permanent=True)
    if not service.enabled or type(service).__module__.rpartition(".")[2] in LOCAL:
        return _failure(f"the service {service.service_name} works only on one machine", is_permanent=True)
    if asked["message"] is None:
        return _checked_host(service, guard)
    limit = float(asked["timeout_seconds"])
    service.socket_connect_timeout = service.socket_read_timeout = limit
    message = asked["message"]
    sys.stdout.buffer.write(SENDS)
    sys.stdout.buffer.flush()
    try:
        is_sent = service.notify(body=message["body"], title=message["title"], notify_type=message["type"])
    except Exception as error:
        notes.lines.append(f"{type(error).__name__}: {error}")
        is_sent = False
    if is_sent:
        return {}
    return _failure(guard.refusal or "; ".join(notes.lines) or "Apprise could not send it", bool(guard.refusal))


def _no_redirect(session: object, response: object) -> None:
    del session, response


def _checked_host(service: Any, guard: Guard) -> dict[str, Any]:
    """Refuses a host that is an address, or has one, which is not allowed. Others are checked when it is used."""
    host = getattr(service, "host", None)
    if host and any("{host}" in template for template in service.templates):
        try:
            found = socket.getaddrinfo(host, None)
        except OSError:
            return {}
        for entry in found:
            try:
                guard.check_address(entry[4])
            except Refused as error:
                return _failure(str(error), is_permanent=True)
    return {}


def _failure(why: str, is_permanent: bool) -> dict[str, Any]:
    return {"error": " ".join(why.split())[:SHOWN_MAX], "is_permanent": is_permanent}


if __name__ == "__main__":
    main()
