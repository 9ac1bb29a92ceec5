"""Sessions of compression jobs: they follow the logs and answer the manager."""
