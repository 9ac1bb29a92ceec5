"""Local deployment: a supervisor that runs the message bus and all services on one machine."""
