"""`foliot.Workflow`: builds a workflow of dependent steps and submits it.

    flow = foliot.Workflow("nightly", on_failure="fail_fast")
    extract = flow.step(extract_rows, day="2026-11-16")
    load = flow.step("load", load_rows, rows=extract.result["rows"])
    tiles = flow.map("tiles", resize, over=range(1000), item="number", max_concurrency=50, after=load)
    approve = flow.approval("approve", timeout=3600, after=tiles)
    flow.shell("publish", "make publish", after=approve)
    flow.teardown("cleanup", remove_scratch)
    night = flow.submit()
    night.signal("approve", {"by": "ann"})
    night.result("load")

A step runs a task, a task with options (`task.with_options(retries=5)`), a task given by name, or another workflow.
Keyword arguments are the payload. The key of a step is its first argument, or the name of its task. `step.result`
stands for the future result of a step, or a part of it; a step that uses it in its payload runs after that step. A task
finds the results of the steps before it in `ctx.upstream`, and the payload of a signal in `ctx.signal`.

An invalid workflow, such as one with a cycle, raises `Invalid` before it is sent. Async variants: `submit_async`,
`submit_at_async`, `schedule_async`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Unpack

import msgspec

from foliot.errors import Invalid
from foliot.model import workflow as model
from foliot.model.map import OnFailure
from foliot.model.workflow import Rule
from foliot.sdk.app import ScheduleFields
from foliot.sdk.default_connection import Server
from foliot.sdk.task_submission import Submitting, due
from foliot.sdk.workflow_handle import WorkflowHandle
from foliot.sdk.workflow_payloads import (
    After,
    Fields,
    add_condition,
    keyed,
    keys_of,
    seconds_of,
    source_of,
    with_key,
    written,
)
from foliot.sdk.workflow_step import Parameters, Reference, Step, checked_payload

if TYPE_CHECKING:
    from foliot.sdk.async_client import AsyncClient
    from foliot.sdk.client import Client


class Connected(Protocol):
    """An object with a server, such as an app, a client or a connection."""

    @property
    def server(self) -> Server: ...


Params: TypeAlias = "Mapping[str, Any] | None"
What: TypeAlias = "Submitting[..., Any] | str | Workflow"


class Workflow:
    """A workflow of steps that depend on each other.

    Args:
        on_failure: After a step fails, `continue` runs the steps that do not depend on it; `fail_fast` cancels them.
        queue: Default queue of the steps.
        tags: Labels to find the run of the workflow by.
        parameters: A JSON Schema for each parameter, with its default:
            `{"region": {"type": "string", "default": "eu"}}`.
        notify: Webhooks to call when the workflow ends: `{"url": ..., "on": ["failed"]}`, or a list of such.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        on_failure: OnFailure = "continue",
        queue: str | None = None,
        priority: int = 0,
        tags: Iterable[str] = (),
        notify: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None,
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.name = name
        self.params = Parameters(parameters or {})
        """References to the parameters, for payloads: `flow.params["region"]`."""
        notifications = notify if notify is None or isinstance(notify, Mapping) else list(notify)
        self._fields: Fields = {
            "name": name,
            "queue": queue,
            "priority": priority or None,
            "tags": list(tags) or None,
            "notify": notifications,
        }
        self._on_failure = on_failure
        self._steps: dict[str, Fields] = {}
        self.servers: list[Server] = []
        """The servers of the apps whose tasks are steps."""
        self._default_server = Server()

    def step(
        self,
        key: str | What,
        task: What | None = None,
        /,
        *,
        after: After = (),
        rule: Rule | None = None,
        when: str | None = None,
        options: Mapping[str, Any] | None = None,
        payload: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> Step:
        """Adds a step: `step(task)` or `step(key, task)`. Another workflow is added in its current form.

        Args:
            after: Steps, or keys of steps, that must end before this one starts.
            rule: Which outcomes of those steps let this one run. The default is `all_success`, or `all_done` if
                `when` looks at the status of a step.
            when: A condition, such as `"steps.check.result.amount > 100"`. If it is false, the step is skipped. The
                step comes after the steps that the condition looks at.
            options: Fields of the API, such as `{"retries": 5, "queue": "mail"}`.
            payload: Arguments whose names are also parameters of this method.
            arguments: The payload of the task.
        """
        return self._add(
            key, task, after, {"rule": rule, "when": when, **(options or {})}, {**(payload or {}), **arguments}
        )

    def teardown(
        self,
        key: str | What,
        task: What | None = None,
        /,
        *,
        after: After = (),
        options: Mapping[str, Any] | None = None,
        payload: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> Step:
        """Adds a step that also runs after a failure or a cancellation.

        It runs when the steps in `after` have ended; without `after`, when all other steps have.
        """
        return self._add(key, task, after, {"teardown": True, **(options or {})}, {**(payload or {}), **arguments})

    def map(
        self,
        key: str | What,
        task: What | None = None,
        /,
        *,
        over: Iterable[Any] | Reference | Step,
        item: str = "item",
        chunk_size: int = 1,
        max_concurrency: int | None = None,
        on_failure: OnFailure = "continue",
        after: After = (),
        rule: Rule | None = None,
        when: str | None = None,
        options: Mapping[str, Any] | None = None,
        payload: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> Step:
        """Adds a step that runs the task once per item, or once per chunk of items.

        Args:
            over: A range, a list, or a step that returns a list.
            item: The argument of the task that receives the item, or the list of items with `chunk_size` above 1.
            max_concurrency: Maximum number of items that run at once.
            on_failure: After an item fails, `continue` with the others, or `fail_fast`.
        """
        used: dict[str, None] = {}
        source = source_of(over, used)
        asked = {
            **source,
            "item_name": item,
            "chunk_size": chunk_size,
            "max_concurrency": max_concurrency,
            "on_failure": on_failure,
        }
        fields = {
            "rule": rule,
            "when": when,
            "map": {name: value for name, value in asked.items() if value is not None},
            **(options or {}),
        }
        return self._add(key, task, [*used, *keys_of(after)], fields, {**(payload or {}), **arguments})

    def shell(
        self,
        key: str,
        command: str | Sequence[str],
        /,
        *,
        after: After = (),
        rule: Rule | None = None,
        when: str | None = None,
        options: Mapping[str, Any] | None = None,
        **payload: Any,
    ) -> Step:
        """Adds a step that runs a command line with /bin/sh, or a program with arguments.

        The keyword arguments are other fields of the task `shell`, such as `cwd`. The command finds the results of the
        steps before it in the JSON file that FOLIOT_UPSTREAM names, and can write its own result to FOLIOT_RESULT.
        """
        words = {"command": command} if isinstance(command, str) else {"argv": list(command)}
        return self._add(key, "shell", after, {"rule": rule, "when": when, **(options or {})}, words | payload)

    def approval(
        self,
        key: str,
        /,
        *,
        timeout: float | timedelta | None = None,
        on_timeout: str = "fail",
        after: After = (),
        rule: Rule | None = None,
        when: str | None = None,
    ) -> Step:
        """Adds a step that waits for a signal, without occupying a worker. Its result is the payload of the signal.

        After `timeout` seconds the step fails, or completes with `on_timeout="continue"`.
        """
        signal = {"on_timeout": on_timeout} | ({} if timeout is None else {"timeout_seconds": seconds_of(timeout)})
        return self._add(key, "wait", after, {"rule": rule, "when": when, "signal": signal}, {})

    def sleep(
        self,
        key: str,
        duration: float | timedelta,
        /,
        *,
        after: After = (),
        rule: Rule | None = None,
        when: str | None = None,
    ) -> Step:
        """Adds a step that waits for a duration, in seconds, without occupying a worker."""
        return self._add(key, "wait", after, {"rule": rule, "when": when, "delay_seconds": seconds_of(duration)}, {})

    def definition(self, params: Params = None) -> Fields:
        """Returns the steps, the failure policy and the parameters as in the API.

        Raises `Invalid` for an invalid step, a cycle or a wrong parameter. A parameter without a value and a default is
        checked when the workflow is submitted.
        """
        found: Fields = {"steps": list(self._steps.values())}
        if self._on_failure != "continue":
            found["on_failure"] = self._on_failure
        if self.params.schemas:
            found["parameters"] = self.params.schemas
        if params:
            found["params"] = dict(params)
        if params is None and self.params.are_required:
            return found
        try:
            model.check(msgspec.convert(found, model.Workflow))
        except msgspec.ValidationError as error:
            raise Invalid(with_key(str(error), list(self._steps)), field="steps") from None
        return found

    def request(self, params: Params = None) -> Fields:
        """Returns the body of `POST /v1/workflows`, which is also the format of `foliot workflows submit`."""
        return {name: value for name, value in self._fields.items() if value is not None} | self.definition(params)

    def submit(
        self, to: Client | Connected | None = None, /, *, params: Params = None, idempotency_key: str | None = None
    ) -> WorkflowHandle:
        """Submits the workflow, which starts at once.

        Args:
            to: A client, an app or a connection. Defaults to the app of the workflow's tasks.
            params: Values of the parameters.
            idempotency_key: Submitting again with this key returns the first workflow.
        """
        return self._created(to, self.request(params or {}) | keyed(idempotency_key))

    def submit_at(
        self, when: datetime | timedelta, to: Client | Connected | None = None, /, *, params: Params = None
    ) -> WorkflowHandle:
        """Submits the workflow, which starts at a time or after a delay."""
        return self._created(to, self.request(params or {}) | due(when))

    def schedule(
        self, to: Client | Connected | None = None, /, *, params: Params = None, **schedule: Unpack[ScheduleFields]
    ) -> str:
        """Creates a recurring job that runs the workflow, by `cron` or `every`. Returns the job's id."""
        body = self._recurring(schedule, params)
        return str(self._server(to).client().create_workflow(body).document["id"])

    async def submit_async(
        self, to: AsyncClient | Connected | None = None, /, *, params: Params = None, idempotency_key: str | None = None
    ) -> WorkflowHandle:
        return await self._created_async(to, self.request(params or {}) | keyed(idempotency_key))

    async def submit_at_async(
        self, when: datetime | timedelta, to: AsyncClient | Connected | None = None, /, *, params: Params = None
    ) -> WorkflowHandle:
        return await self._created_async(to, self.request(params or {}) | due(when))

    async def schedule_async(
        self, to: AsyncClient | Connected | None = None, /, *, params: Params = None, **schedule: Unpack[ScheduleFields]
    ) -> str:
        body = self._recurring(schedule, params)
        async with self._server(to).async_client() as client:
            return str((await client.create_workflow(body)).document["id"])

    def _add(self, key: str | What, task: What | None, after: After, fields: Fields, payload: Fields) -> Step:
        known_as, what = self._what(key, task)
        if known_as in self._steps:
            raise Invalid(
                f"a step {known_as!r} already exists; pass another key: step({known_as + '-2'!r}, ...)",
                field="key",
            )
        used: dict[str, None] = dict.fromkeys(keys_of(after))
        encoded = written(payload, used)
        if fields.get("when") is not None:
            add_condition(known_as, fields["when"], used, self._steps)
        what_runs = key if task is None else task
        if isinstance(what_runs, Submitting):
            encoded = checked_payload(known_as, what_runs, encoded, fields)
        step = {**what, **fields, "key": known_as, "after": list(used)}
        if isinstance(what_runs, Workflow):
            if encoded and not what_runs.params.schemas:
                raise Invalid(f"step {known_as!r}: a workflow without parameters takes no arguments", field="payload")
            for name in encoded:
                # Raises for a parameter that does not exist.
                _ = what_runs.params[name]
            if encoded:
                step["payload"] = what["payload"] | {"params": what["payload"].get("params", {}) | encoded}
        elif encoded:
            step["payload"] = encoded
        self._steps[known_as] = {name: value for name, value in step.items() if (name, value) not in DEFAULTS}
        return Step(known_as)

    def _what(self, key: str | What, task: What | None) -> tuple[str, Fields]:
        """The key of the step, and the fields of its task."""
        what = key if task is None else task
        named: str | None
        fields: Fields
        if isinstance(what, Workflow):
            named = what.name
            fields = {"task": "workflow", "payload": what.definition()}
            self.servers += what.servers
        elif isinstance(what, Submitting):
            fields = what.fields()
            named = fields["task"]
            self.servers.append(what.server())
        elif isinstance(what, str):
            named, fields = what, {"task": what}
        else:
            raise Invalid(f"{what!r} is not a task, the name of a task, or a workflow", field="task")
        known_as = named if task is None else key
        if not isinstance(known_as, str):
            raise Invalid(
                f"{known_as!r} is not a key: the first argument of step(key, task) must be a string", field="key"
            )
        return known_as, fields

    def _recurring(self, schedule: ScheduleFields, params: Params) -> Fields:
        if ("cron" in schedule) == ("every" in schedule):
            raise Invalid("schedule: pass either cron or every", field="cron")
        return self.request(params or {}) | dict(schedule)

    def _created(self, to: Any, body: Fields) -> WorkflowHandle:
        server = self._server(to)
        made = server.client().create_workflow(body).document
        return WorkflowHandle(made["id"], server=server, is_new=made["created"])

    async def _created_async(self, to: Any, body: Fields) -> WorkflowHandle:
        server = self._server(to)
        async with server.async_client() as client:
            made = (await client.create_workflow(body)).document
        return WorkflowHandle(made["id"], server=server, is_new=made["created"])

    def _server(self, to: Any) -> Server:
        if to is not None:
            server: Server = to.server
            return server
        return self.servers[0] if self.servers else self._default_server


DEFAULTS: tuple[tuple[str, Any], ...] = (("rule", None), ("when", None), ("after", []))
