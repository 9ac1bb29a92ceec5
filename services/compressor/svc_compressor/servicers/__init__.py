"""gRPC servicers of the compressor."""
