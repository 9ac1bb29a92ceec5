"""Platform `kubernetes`: agents as Jobs of a Kubernetes cluster."""
