"""The command line: `nnictl`."""
