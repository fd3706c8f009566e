"""What a condition becomes for one file, and what the file's metadata says of it: row groups and pages it refuses."""
