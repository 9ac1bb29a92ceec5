"""What the dispatcher reaches the world with."""
