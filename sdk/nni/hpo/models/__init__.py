"""Models of results, which know no tuner: densities, Gaussian processes, forests, a network."""
