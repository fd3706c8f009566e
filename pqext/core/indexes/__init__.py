"""Page indexes and Bloom filters: written, read and evaluated."""
