"""Jobs, runs and attempts, and every decision about them. Pure: no I/O, no clock."""
