"""Handlers of the REST routes, one module per resource."""
