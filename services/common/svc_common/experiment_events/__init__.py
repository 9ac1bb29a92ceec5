"""Values of the shared log of an experiment: causes of ends, stops, losses and waits."""
