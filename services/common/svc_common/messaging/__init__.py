"""The bus: ports that services need, an adapter on NATS, and in-memory fakes."""
