"""Searches in one process, and the drivers and stopping rules that the host shares with them."""
