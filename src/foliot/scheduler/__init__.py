"""The scheduler node: what is due becomes ready, what was lost comes back, history stays bounded. Any number may
run."""
