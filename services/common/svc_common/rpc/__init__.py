"""gRPC servers and clients: error mapping, access checks, malformed requests, telemetry."""
