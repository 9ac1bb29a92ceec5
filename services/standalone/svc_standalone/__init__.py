"""Local shape: the bus and all services of one machine as child processes of a supervisor."""
