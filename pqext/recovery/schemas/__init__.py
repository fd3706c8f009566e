"""Schema of a file that lost its own, and the physical types that its columns can have."""
