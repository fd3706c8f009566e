"""The schema of a file that lost its own, and the physical forms that its columns can have."""
