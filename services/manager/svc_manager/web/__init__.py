"""REST API, event streams and web page of the manager, over its use cases."""
