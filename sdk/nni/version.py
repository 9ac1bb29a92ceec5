"""The one version number of all distributions of this repository."""

__version__ = "4.0.0.dev0"
