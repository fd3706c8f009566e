"""Write, read and evaluate page indexes and Bloom filters."""
