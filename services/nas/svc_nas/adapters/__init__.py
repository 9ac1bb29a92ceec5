"""Implementations of the ports: processes of strategies."""
