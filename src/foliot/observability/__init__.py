"""What an operator sees: today, log lines made from events."""
