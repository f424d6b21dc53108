"""Checks what a cluster did, afterwards and without it: pure functions over what was written down."""
