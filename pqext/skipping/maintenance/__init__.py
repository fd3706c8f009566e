"""Build, refresh, compact and upgrade stores."""
