"""What a user's own code imports. Loads no server library."""
