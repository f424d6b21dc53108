"""Turns the endings of runs into lines of the StatsD protocol. Pure."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from foliot.model.states import RunState
from foliot.store.exports import Ending

# Fits into one Ethernet frame with the headers of IPv6 and UDP.
PACKET_BYTES = 1_432
# Of more durations in one look, only a sample is sent.
DURATIONS_MAX = 1_000
# The success rate of a job counts its last runs, up to this number.
RATE_OF = 100
# The jobs that ended last. Others begin a new success rate with their next run.
JOBS_MAX = 1_000
NAMES_CACHED = 4_096
UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
STATUSES = {
    RunState.SUCCEEDED: "SUCCESS",
    RunState.FAILED: "FAILED",
    RunState.CANCELLED: "CANCELLED",
    RunState.SKIPPED: "SKIPPED",
}
OUTCOMES = {"SUCCESS": "success", "FAILED": "failure", "TIMEOUT": "failure"}


class StatsdLines:
    def __init__(self, *, has_tags: bool) -> None:
        """With tags, the job, task, queue and status are tags in the form of DogStatsD."""
        self._has_tags = has_tags
        self._results: OrderedDict[str, deque[bool]] = OrderedDict()
        """Whether the last runs of each job succeeded."""

    def of_endings(self, endings: Sequence[Ending]) -> Iterator[str]:
        yield from self._counts(endings)
        yield from self._durations(endings)
        yield from self._success_rates(endings)

    def of_queues(self, depths: Mapping[str, int]) -> Iterator[str]:
        """Gauges of the runs that are ready and wait for a worker."""
        yield f"jobs.queue_depth:{sum(depths.values())}|g"
        if self._has_tags:
            for queue, depth in depths.items():
                yield f"jobs.queue_depth_of:{depth}|g{_tags(queue=queue)}"

    def _counts(self, endings: Sequence[Ending]) -> Iterator[str]:
        groups = Counter([(job_of(ending), ending.task, ending.queue, status_of(ending)) for ending in endings])
        counted: Counter[str] = Counter()
        for (job, task, queue, status), count in groups.items():
            tags = _tags(job=job, task=task, queue=queue, status=status) if self._has_tags else ""
            counted[f"jobs.{status}.count:{{}}|c{tags}"] += count
            if outcome := OUTCOMES.get(status):
                counted[f"jobs.{outcome}:{{}}|c{tags}"] += count
        for line, count in counted.items():
            yield line.format(count)

    def _durations(self, endings: Sequence[Ending]) -> Iterator[str]:
        timed = [(ending, ending.started_at) for ending in endings if ending.started_at is not None]
        step = max(1, -(-len(timed) // DURATIONS_MAX))
        rate = "" if step == 1 else f"|@{1 / step:.6g}"
        for ending, started_at in timed[::step]:
            milliseconds = max(0.0, (ending.at - started_at).total_seconds() * 1000)
            name = "jobs.duration" if self._has_tags else f"jobs.{job_of(ending)}.duration"
            line = f"{name}:{milliseconds:.3f}|ms{rate}"
            yield line + _tags_of(ending) if self._has_tags else line

    def _success_rates(self, endings: Sequence[Ending]) -> Iterator[str]:
        changed: defaultdict[str, list[bool]] = defaultdict(list)
        for ending in endings:
            if (has_succeeded := ending.state is RunState.SUCCEEDED) or ending.state is RunState.FAILED:
                changed[job_of(ending)].append(has_succeeded)
        for job, results in changed.items():
            self._results.setdefault(job, deque(maxlen=RATE_OF)).extend(results)
            self._results.move_to_end(job)
        while len(self._results) > JOBS_MAX:
            self._results.popitem(last=False)
        for job in sorted(changed.keys() & self._results.keys()):
            latest = self._results[job]
            rate = sum(latest) / len(latest)
            if self._has_tags:
                yield f"jobs.success_rate:{rate:.4f}|g{_tags(job=job)}"
            else:
                yield f"jobs.{job}.success_rate:{rate:.4f}|g"


def status_of(ending: Ending) -> str:
    is_timeout = ending.state is RunState.FAILED and ending.reason == "timeout"
    return "TIMEOUT" if is_timeout else STATUSES[ending.state]


def job_of(ending: Ending) -> str:
    """The name of the job, or of its task: ids would create a metric for each run."""
    return safe(ending.name if ending.name and ending.job_id is not None else ending.task)


@lru_cache(NAMES_CACHED)
def safe(name: str) -> str:
    """A name without the characters that mean something to StatsD or Graphite."""
    return UNSAFE.sub("_", name)[:100]


def packets(lines: Iterable[str]) -> Iterator[bytes]:
    """Joins lines into packets of a size that networks carry whole."""
    packet = b""
    for line in lines:
        encoded = line.encode()
        if packet and len(packet) + 1 + len(encoded) > PACKET_BYTES:
            yield packet
            packet = encoded
        else:
            packet = packet + b"\n" + encoded if packet else encoded
    if packet:
        yield packet


def _tags_of(ending: Ending) -> str:
    return _tags(job=job_of(ending), task=ending.task, queue=ending.queue, status=status_of(ending))


def _tags(**tags: str) -> str:
    return "|#" + ",".join(f"{name}:{safe(value)}" for name, value in tags.items())
