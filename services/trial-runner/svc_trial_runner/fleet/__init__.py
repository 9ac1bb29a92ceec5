"""Fleet: launches and ends the agents of pools on their platforms."""
