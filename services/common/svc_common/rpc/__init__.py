"""gRPC servers and clients: error mapping, malformed requests, and telemetry of calls."""
