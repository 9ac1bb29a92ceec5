"""Platform `aml`: agents as command jobs of Azure Machine Learning."""
