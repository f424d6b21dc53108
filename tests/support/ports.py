"""Fixed ports for servers that stop and start again during a test."""

from __future__ import annotations

import random
import socket

# Below the kernel's ephemeral ports: a connection of another test may get one of those at any moment.
KEPT_FROM_CHANCE = range(15_000, 32_000)


def free_port() -> int:
    """A free port on the loopback interface, outside the ephemeral range."""
    while True:
        port = random.SystemRandom().choice(KEPT_FROM_CHANCE)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
