"""NAS service: hosts the strategies of architecture searches."""
