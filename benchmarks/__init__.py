"""Measures Foliot against raw SQL, in the same run, on the same server. `make bench`."""
