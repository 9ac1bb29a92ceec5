"""Manager: owner of experiments, trials and budgets, and only writer of their event logs."""
