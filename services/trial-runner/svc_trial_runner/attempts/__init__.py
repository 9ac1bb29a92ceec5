"""Execution of trial attempts and the components that attempts share."""
