"""What an operator sees: log lines and metrics, both made from events."""
