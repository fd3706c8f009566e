"""Write data frames: shred VARIANT columns, stage files in tasks, and commit jobs atomically."""
