"""Platform `remote`: machines that are reached over SSH."""
