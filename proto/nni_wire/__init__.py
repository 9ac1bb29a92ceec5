"""What both ends of the wire share and no message can say: conversions, limits, key names."""
