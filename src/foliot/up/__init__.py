"""Everything on one machine: starts it, restarts children that die, and grows and shrinks the pool of workers."""
