"""Adapters of the agent to the machine, the blob store and the manager."""
