"""Proposing where good results are dense: what TPE is made of."""
