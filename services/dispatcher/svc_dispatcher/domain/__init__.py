"""What the dispatcher decides, free of I/O."""
