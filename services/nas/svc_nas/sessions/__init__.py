"""Sessions of explorations: they follow the logs, host the strategies and report to the manager."""
