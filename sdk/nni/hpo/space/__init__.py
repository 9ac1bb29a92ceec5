"""Search spaces: parser, domains, constraints, and declarations by Python types."""

from nni.hpo.space.parser import ALL_TYPES, contains, parse_space, place, walk

__all__ = ["ALL_TYPES", "contains", "parse_space", "place", "walk"]
