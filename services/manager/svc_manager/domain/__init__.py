"""Rules of experiments and trials: pure, without I/O, clock or randomness of their own."""
