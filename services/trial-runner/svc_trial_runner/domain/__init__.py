"""What the agent decides: values and rules without I/O, clock or randomness."""
