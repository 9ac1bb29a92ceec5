"""Blob store: its port, its implementations in a folder, on S3 and in memory, and archives."""
