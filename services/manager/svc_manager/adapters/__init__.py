"""Adapters: the manager's ports on Redis, gRPC, the byte store and this machine's file system."""
