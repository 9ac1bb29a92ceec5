"""Rules of experiments and trials: values, state machines and decisions, without I/O."""
