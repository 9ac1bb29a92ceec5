"""The agent: the tasks it holds, its presence, and access to trial logs."""
