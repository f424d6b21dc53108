"""Limits how often a caller may send requests, before anything of a request is read. The state is in the memory of one
process, and bounded."""

from __future__ import annotations

from collections import OrderedDict

from foliot.clock import Clock

KEYS_MAX = 10_000


class RateLimit:
    """A token bucket for each key: it holds `burst` requests and fills at a steady rate."""

    def __init__(self, *, clock: Clock, per_second: float, burst: float) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """0 if the request is within the limit; otherwise the seconds until the next one is."""
        left = self._left(key)
        if left < 1:
            return (1 - left) / self._per_second
        self._buckets[key] = (left - 1, self._clock.monotonic())
        self._buckets.move_to_end(key)
        if len(self._buckets) > KEYS_MAX:
            # The bucket that was not used for longest is full or nearly full.
            self._buckets.popitem(last=False)
        return 0.0

    def is_spent(self, key: str) -> bool:
        return self._left(key) < 1

    def _left(self, key: str) -> float:
        now = self._clock.monotonic()
        left, at = self._buckets.get(key, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_second)
