"""Agent of one machine: its running tasks, heartbeats, and access to trial logs."""
