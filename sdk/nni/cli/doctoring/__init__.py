"""What `nnictl doctor` looks at, one module per kind of thing."""
