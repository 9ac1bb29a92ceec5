"""The gRPC faces: a message becomes values, a use case answers, and back."""
