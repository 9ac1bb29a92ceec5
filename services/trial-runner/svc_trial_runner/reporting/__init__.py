"""Delivery of attempt reports to the manager, across restarts of the agent."""
