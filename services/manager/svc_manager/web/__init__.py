"""The manager's web face: REST, server-sent events and the page, over the manager's use cases."""
