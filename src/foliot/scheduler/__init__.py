"""The scheduler node: makes due runs ready, requeues lost runs and prunes history. Any number of nodes may run."""
