"""Search loops in one process, and the drivers, plans and stopping rules that the host uses too."""
