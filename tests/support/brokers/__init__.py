"""Real message brokers for tests: killed, frozen, wiped and lied to."""
