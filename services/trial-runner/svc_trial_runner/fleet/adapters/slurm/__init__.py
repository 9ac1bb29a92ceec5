"""Slurm as a platform of agents: an agent is a batch job, watched by Slurm's commands."""
