"""Platform `openpai`: agents as jobs of an OpenPAI cluster."""
