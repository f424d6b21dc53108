"""What jobs, runs and attempts are, and every decision about them. Pure: no I/O, no clock."""
