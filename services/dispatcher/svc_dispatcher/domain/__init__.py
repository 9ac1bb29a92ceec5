"""Decisions and values of the dispatcher, free of I/O."""
