"""Where bytes go that are too large for the bus: a port, a folder, and an in-memory fake."""
