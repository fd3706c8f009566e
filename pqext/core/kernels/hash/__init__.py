"""Hash tables and the hash of Bloom filters."""
