"""`Operations`: a client for runs, dead letters, workers, queues, tokens and the audit log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from foliot.clock import SystemClock, block
from foliot.errors import FoliotError, StoreUnavailable, Unreachable
from foliot.sdk.client import ENDED, PATIENCE_SECONDS, Client
from foliot.sdk.client import Page as ItemPage
from foliot.sdk.http_protocol import Answer, path_of

PAGE = 200
CHANNELS = "/v1/alert-channels"
# The server sends a keep-alive at least every ten seconds.
SILENCE_SECONDS = 30.0
RETRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class LogEvent:
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunEvent:
    id: str
    """For the end of a run: the id to continue `follow_events` from. Otherwise empty."""
    data: dict[str, Any]


class Operations(Client):
    """A client of the whole HTTP API: adds operations to `Client`."""

    def list_runs(self, filters: Mapping[str, str], *, limit: int) -> Answer:
        """Lists up to `limit` runs, newest first, as a single page."""
        return self._list("/v1/runs", filters, limit)

    def list_workflows(self, filters: Mapping[str, str], *, limit: int) -> Answer:
        """Lists up to `limit` started workflows, newest first, as a single page."""
        return self._list("/v1/workflows", filters, limit)

    def page_of_jobs(self, *, after: str) -> Answer:
        """Lists a page of the recurring jobs whose names come after this one."""
        return self._answer("GET", "/v1/jobs", query={"after": after, "limit": PAGE})

    def get_run(self, run_id: str) -> Answer:
        return self._answer("GET", _path(run_id))

    def list_attempts(self, run_id: str) -> Answer:
        return self._answer("GET", _path(run_id, "/attempts"))

    def list_checkpoints(self, run_id: str, *, after: str = "") -> Answer:
        """Lists a page of the recorded steps and waits of a durable function."""
        return self._answer(
            "GET", _path(run_id, "/checkpoints"), query={"limit": PAGE} | ({"after": after} if after else {})
        )

    def rerun(self, run_id: str, *, payload: Any = None, keep_checkpoints: bool = False) -> Answer:
        body = {} if payload is None else {"payload": payload}
        return self._answer(
            "POST", _path(run_id, "/rerun"), body | ({"keep_checkpoints": True} if keep_checkpoints else {})
        )

    def cancel_runs(self, group: Mapping[str, Any]) -> Answer:
        """Cancels a batch of runs that match the filters of `list_runs`; with `dry_run`, counts them.

        See POST /v1/runs/cancel.
        """
        return self._answer("POST", "/v1/runs/cancel", group)

    def rerun_runs(self, group: Mapping[str, Any]) -> Answer:
        """Reruns a batch of finished runs that match; with `dry_run`, counts them. See POST /v1/runs/rerun."""
        return self._answer("POST", "/v1/runs/rerun", group)

    def group_dead_letters(self, filters: Mapping[str, str]) -> Answer:
        return self._answer("GET", "/v1/dead-letters", query={**filters, "limit": PAGE})

    def list_dead_letters(self, filters: Mapping[str, str], *, limit: int) -> Answer:
        return self._list("/v1/dead-letters", {**filters, "flat": "1"}, limit)

    def replay_dead_letters(self, replay: Mapping[str, Any]) -> Answer:
        return self._answer("POST", "/v1/dead-letters/replay", replay)

    def list_replays(self, filters: Mapping[str, str]) -> Answer:
        return self._answer("GET", "/v1/dead-letters/replays", query={**filters, "limit": PAGE})

    def get_replay(self, replay_id: str) -> Answer:
        return self._answer("GET", f"/v1/dead-letters/replays/{quote(replay_id, safe='')}")

    def stop_replay(self, replay_id: str) -> Answer:
        return self._answer("POST", f"/v1/dead-letters/replays/{quote(replay_id, safe='')}/stop")

    def list_workers(self) -> Answer:
        return self._answer("GET", "/v1/workers")

    def drain_worker(self, worker_id: str) -> Answer:
        return self._answer("POST", f"/v1/workers/{quote(worker_id, safe='')}/drain")

    def list_tokens(self) -> Answer:
        return self._answer("GET", "/v1/tokens")

    def list_tasks(self, *, limit: int) -> Answer:
        """Lists up to `limit` tasks by name, as a single page."""
        return self._list("/v1/tasks", {}, limit)

    def get_task(self, name: str) -> Answer:
        return self._answer("GET", path_of(name, root="/v1/tasks"))

    def list_disabled_tasks(self) -> Answer:
        return self._answer("GET", "/v1/disabled-tasks")

    def disable_task(self, name: str, how: Mapping[str, Any]) -> Answer:
        return self._answer("POST", path_of(name, "/disable", root="/v1/tasks"), how)

    def enable_task(self, name: str, how: Mapping[str, Any]) -> Answer:
        return self._answer("POST", path_of(name, "/enable", root="/v1/tasks"), how)

    def create_token(self, token: Mapping[str, Any]) -> Answer:
        return self._answer("POST", "/v1/tokens", token)

    def revoke_token(self, reference: str) -> Answer:
        return self._answer("DELETE", path_of(reference, root="/v1/tokens"))

    def list_audit(self, filters: Mapping[str, str], *, limit: int) -> Answer:
        """Lists up to `limit` entries of the audit log, newest first, as a single page."""
        return self._list("/v1/audit", filters, limit)

    def put_calendar(self, name: str, days: Mapping[str, Any]) -> Answer:
        """Creates a calendar, or replaces its days."""
        return self._answer("PUT", path_of(name, root="/v1/calendars"), days)

    def get_readiness(self) -> Answer:
        return self._answer("GET", "/readyz")

    def list_schedulers(self) -> Answer:
        """Lists the scheduler nodes and all running processes."""
        return self._answer("GET", "/v1/schedulers")

    def get_database_health(self) -> Answer:
        return self._answer("GET", "/v1/health/database")

    def list_settings(self) -> Answer:
        """Lists the settings of the server, without secrets."""
        return self._answer("GET", "/v1/settings")

    def list_alert_channels(self) -> Answer:
        return self._answer("GET", CHANNELS)

    def get_alert_channel(self, name: str) -> Answer:
        """Returns a channel without its secrets. Its `etag` is for `put_alert_channel`."""
        return self._answer("GET", path_of(name, root=CHANNELS))

    def put_alert_channel(self, name: str, channel: Mapping[str, Any], *, if_match: str = "") -> Answer:
        """Creates a channel, or replaces it. With `if_match`, only if nobody has changed it meanwhile."""
        return self._answer("PUT", path_of(name, root=CHANNELS), channel, if_match=if_match)

    def delete_alert_channel(self, name: str) -> None:
        self._send("DELETE", path_of(name, root=CHANNELS))

    def test_alert_channel(self, name: str) -> Answer:
        """Sends a test message. The answer says whether the other side accepted it."""
        return self._answer("POST", path_of(name, "/test", root=CHANNELS))

    def seal_alert_channels(self) -> Answer:
        """Encrypts the secrets of all channels with the first key of `secret_key`."""
        return self._answer("POST", f"{CHANNELS}/seal")

    def list_queues(self) -> Answer:
        return self._answer("GET", "/v1/queues")

    def get_queue(self, name: str) -> Answer:
        """Returns the limits of a queue. Its `etag` is for `change_queue`."""
        return self._answer("GET", path_of(name, root="/v1/queues"))

    def change_queue(self, name: str, limits: Mapping[str, int | None], *, if_match: str = "") -> Answer:
        """Changes limits of a queue. With `if_match`, only if nobody has changed them meanwhile."""
        return self._answer("PATCH", path_of(name, root="/v1/queues"), limits, if_match=if_match)

    def get_stats(self) -> Answer:
        return self._answer("GET", "/v1/stats")

    def read_logs(self, run_id: str, *, attempt: int | None = None) -> bytes:
        return self._send("GET", _path(run_id, "/logs"), query={} if attempt is None else {"attempt": attempt})

    def follow_logs(self, run_id: str, *, attempt: int | None = None) -> Iterator[LogEvent]:
        """Yields the output of a run until it ends. Resumes the stream after a lost connection."""
        # Fail at once if the server can't be reached or the run does not exist.
        self.get_run(run_id)
        clock, lost_at, last_id = SystemClock(), None, ""
        while True:
            try:
                for event_id, event in self._stream(run_id, attempt, last_id):
                    lost_at, last_id = None, event_id or last_id
                    yield event
                    if event.kind == "end":
                        return
            except (httpx.HTTPError, Unreachable, StoreUnavailable) as error:
                lost_at = clock.monotonic() if lost_at is None else lost_at
                if clock.monotonic() - lost_at > PATIENCE_SECONDS:
                    raise Unreachable(f"lost the output of {run_id}: {error or type(error).__name__}") from None
            block(RETRY_SECONDS)

    def follow_events(self, filters: Mapping[str, str] | None = None, *, last_id: str = "") -> Iterator[RunEvent]:
        """Yields events of runs, forever: each end of a run once, in order, and a sample of other changes.

        `filters` are queue, task, job, state, tag, and `since`. The stream resumes after a lost connection. To resume
        it in another program, pass the `id` of the last event as `last_id`.
        """
        yield from self._followed("/v1/events", dict(filters or {}), last_id)

    def follow_run(self, run_id: str) -> Iterator[RunEvent]:
        """Yields the changes of a run until it ends."""
        for event in self._followed(_path(run_id, "/events"), {}, ""):
            yield event
            if event.data["status"] in ENDED:
                return

    def list_events(self, filters: Mapping[str, str]) -> Iterator[RunEvent]:
        """Yields the runs that ended `since` a time."""
        try:
            for event_id, event in self._stream_of("/v1/events", {**filters, "follow": "0"}, ""):
                yield RunEvent(event_id, event.data)
        except httpx.HTTPError as error:
            raise self._wire.failure(error, is_reading=True) from None

    def _followed(self, path: str, query: dict[str, str], last_id: str) -> Iterator[RunEvent]:
        clock, lost_at = SystemClock(), None
        is_begun = False
        while True:
            try:
                for event_id, event in self._stream_of(path, query, last_id):
                    lost_at, is_begun, last_id = None, True, event_id or last_id
                    yield RunEvent(event_id, event.data)
            except (httpx.HTTPError, Unreachable, StoreUnavailable) as error:
                lost_at = clock.monotonic() if lost_at is None else lost_at
                if not is_begun and isinstance(error, httpx.HTTPError):
                    raise self._wire.failure(error, is_reading=True) from None
                if not is_begun or clock.monotonic() - lost_at > PATIENCE_SECONDS:
                    raise Unreachable(f"can't follow {path}: {error or type(error).__name__}") from None
            block(RETRY_SECONDS)

    def _stream(self, run_id: str, attempt: int | None, last_id: str) -> Iterator[tuple[str, LogEvent]]:
        query = {"follow": "1"} | ({} if attempt is None else {"attempt": str(attempt)})
        yield from self._stream_of(_path(run_id, "/logs"), query, last_id)

    def _stream_of(self, path: str, query: Mapping[str, str], last_id: str) -> Iterator[tuple[str, LogEvent]]:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        timeout = httpx.Timeout(SILENCE_SECONDS)
        with self._http.stream("GET", path, params=query, headers=headers, timeout=timeout) as answer:
            if not answer.is_success:
                answer.read()
                raise self._wire.refusal(answer)
            yield from events_of(answer.iter_lines())

    def _list(self, path: str, filters: Mapping[str, str], limit: int) -> Answer:
        items: list[msgspec.Raw] = []
        query: dict[str, str | int] = dict(filters)
        while True:
            page = self._decoded(
                self._send("GET", path, query={**query, "limit": max(1, min(PAGE, limit - len(items)))})
            )
            items.extend(page.items)
            if page.next is None or len(items) >= limit:
                return self._wire.understood(msgspec.json.encode(ItemPage(items, page.next)))
            query["after"] = page.next

    def _decoded(self, content: bytes) -> ItemPage:
        try:
            return msgspec.json.decode(content, type=ItemPage)
        except msgspec.DecodeError:
            raise self._wire.foreign("a response that is not a page of items") from None


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, LogEvent]]:
    """Parses server-sent events and yields them with their ids."""
    kind, event_id, data = "", "", ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            event_id = value
        elif name == "data":
            data = value
        elif not line and data:
            try:
                yield event_id, LogEvent(kind, msgspec.json.decode(data, type=dict[str, Any]))
            except msgspec.DecodeError:
                raise FoliotError("the server's stream contains invalid events; check FOLIOT_URL") from None
            kind, event_id, data = "", "", ""


def _path(run_id: str, rest: str = "") -> str:
    return path_of(run_id, rest, kind="run")
