"""Platform `dlc`: agents as jobs of PAI-DLC, the training service of Alibaba Cloud."""
