"""Checks the recorded history of a cluster with pure functions."""
