"""Platforms whose agents are objects of an operator of Kubernetes."""
