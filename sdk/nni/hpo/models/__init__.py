"""Models of results: densities, Gaussian processes, forests and a neural network."""
