"""Implementations of the gRPC services."""
