"""Adapters of the dispatcher to processes, servers and the algorithm library."""
