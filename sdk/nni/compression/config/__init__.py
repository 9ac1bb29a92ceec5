"""Configuration lists: which targets of which modules are pruned, and how much."""
