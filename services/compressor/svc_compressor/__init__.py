"""The compressor: answers requests for parameters of compression jobs, step by step."""
