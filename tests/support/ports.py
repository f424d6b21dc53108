"""Ports for servers that are told theirs, and keep it while they are stopped and started again."""

from __future__ import annotations

import random
import socket

# Below those that the kernel gives to whoever asks for any: another test's connection may get one of these at any
# moment.
KEPT_FROM_CHANCE = range(15_000, 32_000)


def free_port() -> int:
    """A port on the loopback interface that nobody is on, and that nobody is given by chance."""
    while True:
        port = random.SystemRandom().choice(KEPT_FROM_CHANCE)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
