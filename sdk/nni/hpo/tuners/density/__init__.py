"""Parzen estimators of TPE: observations, rankings, densities and proposals."""
