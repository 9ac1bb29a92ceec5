"""gRPC servicers of the NAS service."""
