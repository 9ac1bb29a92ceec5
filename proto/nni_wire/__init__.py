"""Definitions that clients and services share beside messages: conversions, limits, key names."""
