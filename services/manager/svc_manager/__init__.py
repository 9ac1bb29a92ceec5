"""The manager: owns experiments, trials and budgets, and is the only writer of their logs."""
