"""Topics of message brokers, which carry events out of Foliot and messages into it."""
