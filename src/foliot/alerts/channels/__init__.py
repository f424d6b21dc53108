"""Channels of alerts: one module for each kind."""
