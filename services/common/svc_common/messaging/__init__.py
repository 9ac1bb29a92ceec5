"""Message bus: its ports, the adapter on NATS, and in-memory fakes."""
