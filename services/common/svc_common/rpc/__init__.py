"""gRPC clients and servers of the services, with error mapping and telemetry of calls."""
