"""Gathers a report about an installation, and says what is wrong with it."""
