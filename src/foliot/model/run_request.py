"""The fields that a job and a step of a workflow share: the task, its payload, and the options of the run."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.backoff import Backoff
from foliot.model.concurrency import Concurrency
from foliot.model.fairness import FairnessKey
from foliot.model.field_rules import Rule, all_of, any_of, at_most_one, field_is, given, not_given
from foliot.model.guarantee import Guarantee
from foliot.model.namespace import Namespace
from foliot.model.notification import NOTIFICATIONS_MAX, Notification
from foliot.model.priority import PRIORITY_MAX, PRIORITY_MIN
from foliot.model.rate_limit import RateLimit
from foliot.model.retry import Causes
from foliot.model.run import MAX_RETRIES, MAX_SNOOZES, MAX_TIMEOUT_SECONDS, RunOptions, Signal, Tags
from foliot.validation_errors import form

# Python's $ also matches before a newline at the end; JSON Schema's does not and has no \Z.
NAME = form(
    r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$(?!\n)",
    "consist of letters, digits and _ . : -, and begin with a letter, a digit or _",
)
MAX_DELAY_SECONDS = 315_360_000

# The task, named in one of several ways. A run that only waits for a signal has none.
SAYS_TASK = any_of(
    all_of(given("task"), not_given("job_type", "command")),
    all_of(given("job_type"), not_given("task", "command")),
    all_of(given("command"), not_given("task", "job_type"), field_is("payload", {"maxProperties": 0})),
    all_of(given("signal"), not_given("task", "job_type", "command")),
)

# Most jobs say nothing of all this, which one look finds out.
OPTIONS = (
    "retries", "max_retries", "timeout_seconds", "backoff", "concurrency", "rate", "fairness_key", "guarantee",
    "retry_on", "never_on",
    "max_snoozes", "signal", "metadata", "tags", "notify", "templates",
)  # fmt: skip
options_of = attrgetter(*OPTIONS)
NO_OPTIONS = (None,) * len(OPTIONS)

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=NAME)]
Retries = Annotated[int, Meta(ge=0, le=MAX_RETRIES)]


class RunRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """`job_type` and `max_retries` are aliases of `task` and `retries`."""

    task: Name | None = None
    job_type: Name | None = None
    command: (
        Annotated[
            str, Meta(min_length=1, max_length=100_000, description="A shell command line; implies task `shell`.")
        ]
        | None
    ) = None
    payload: Annotated[dict[str, Any], Meta(description="The keyword arguments of the task.")] | None = None
    name: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    delay_seconds: Annotated[float, Meta(ge=0, le=MAX_DELAY_SECONDS)] | None = None
    signal: (
        Annotated[Signal, Meta(description="It starts only when it has been signalled, by POST /v1/runs/{id}/signal.")]
        | None
    ) = None
    queue: Name | None = None
    priority: Annotated[
        int, Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX, description="Runs with a higher priority start first.")
    ] = 0
    retries: Retries | None = None
    max_retries: Annotated[Retries, Meta(description="Alias of `retries`; set only one of the two.")] | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)] | None = None
    backoff: Backoff | None = None
    concurrency: Concurrency | None = None
    rate: RateLimit | None = None
    fairness_key: FairnessKey | None = None
    guarantee: Guarantee | None = None
    retry_on: Annotated[Causes, Meta(description="Error names or exit codes. Only these are retried.")] | None = None
    never_on: Annotated[Causes, Meta(description="Names of errors, or exit codes: these are not retried.")] | None = (
        None
    )
    max_snoozes: Annotated[int, Meta(ge=0, le=MAX_SNOOZES)] | None = None
    tags: Annotated[Tags, Meta(description="Labels to find the job and its runs by.")] | None = None
    notify: (
        Annotated[Notification, Meta(description="Where to report the end of the job: one notification, or a list.")]
        | Annotated[tuple[Notification, ...], Meta(max_length=NOTIFICATIONS_MAX)]
        | None
    ) = None
    templates: (
        Annotated[
            bool,
            Meta(
                description="Whether placeholders such as `{{ scheduled_for | date }}` in the payload are rendered. "
                "By default they are in commands and in the payloads of `shell`, `http` and `wait_for_...`."
            ),
        ]
        | None
    ) = None
    metadata: (
        Annotated[dict[str, Any], Meta(description="Your own data. Foliot stores and shows it, and does not use it.")]
        | None
    ) = None

    RULES: ClassVar[tuple[Rule, ...]] = (
        SAYS_TASK,
        at_most_one("retries", "max_retries"),
        at_most_one("signal", "delay_seconds"),
    )

    def task_name(self) -> str:
        if self.task is not None and self.job_type is None and self.command is None:
            return self.task
        named = [name for name in (self.task, self.job_type, "shell" if self.command is not None else None) if name]
        if not named and self.signal is not None:
            return "wait"
        if not named:
            raise Invalid("task: say what to run: a task's name, or a command", field="task")
        if len(set(named)) > 1:
            raise Invalid(f"task: {' and '.join(map(repr, named))} name different tasks; give one", field="task")
        return named[0]

    def as_asked(self, error: Invalid) -> Invalid:
        """The error, with the field as the request calls it: a command is given as `command`, too."""
        if self.command is None or error.field != "payload.command":
            return error
        return type(error)(error.detail.removeprefix("payload."), field="command")

    def payload_tree(self) -> dict[str, Any] | None:
        payload = self.payload
        if self.command is not None:
            if payload:
                raise Invalid("payload: a command has no payload", field="payload")
            payload = {"command": self.command}
        return payload or None

    def payload_text(self) -> str | None:
        payload = self.payload_tree()
        return msgspec.json.encode(payload).decode() if payload else None

    def options_text(self, namespace: Namespace) -> str | None:
        if options_of(self) == NO_OPTIONS:
            return None
        options = self.run_options(namespace)
        return None if options == RunOptions() else msgspec.json.encode(options).decode()

    def run_options(self, namespace: Namespace) -> RunOptions:
        """With keys as they are stored."""
        if self.retries is not None and self.max_retries is not None:
            raise Invalid("max_retries: is another name of retries; give one", field="max_retries")
        if self.signal is not None and self.delay_seconds is not None:
            raise Invalid(
                "signal: a run that waits for a signal has no delay; let a step before it wait", field="signal"
            )
        retries = self.max_retries if self.retries is None else self.retries
        return RunOptions(
            retries=retries,
            timeout_seconds=self.timeout_seconds,
            backoff=self.backoff,
            concurrency=self.concurrency
            and msgspec.structs.replace(self.concurrency, key=namespace.qualified_key(self.concurrency.key)),
            rate=self.rate and msgspec.structs.replace(self.rate, key=namespace.qualified_key(self.rate.key)),
            fairness_key=self.fairness_key and namespace.qualified_key(self.fairness_key),
            guarantee=self.guarantee,
            retry_on=self.retry_on,
            never_on=self.never_on,
            max_snoozes=self.max_snoozes,
            signal=self.signal,
            templates=self.templates,
            metadata=self.metadata or None,
            tags=tuple(dict.fromkeys(self.tags)) if self.tags else None,
            notify=(self.notify,) if isinstance(self.notify, Notification) else self.notify or None,
        )
