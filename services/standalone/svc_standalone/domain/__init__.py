"""Rules of the supervisor, free of processes and clocks."""
