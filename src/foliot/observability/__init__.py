"""Log lines and metrics for operators, both made from events."""
