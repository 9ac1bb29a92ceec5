"""gRPC servicers: each converts a message to values, calls a use case, and converts the result."""
