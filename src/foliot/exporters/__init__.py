"""Services of scheduler nodes that send the endings of runs to other systems."""
