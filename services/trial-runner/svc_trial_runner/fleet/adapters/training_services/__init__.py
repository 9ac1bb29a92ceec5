"""Platforms of custom training services: each job of a service is an agent."""
