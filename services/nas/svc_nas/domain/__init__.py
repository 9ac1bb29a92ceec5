"""Values and rules of explorations, without I/O."""
