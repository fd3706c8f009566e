"""What a type's handler takes part in beyond its own columns: columns derived, file metadata, the order of rows."""
