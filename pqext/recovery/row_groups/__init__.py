"""Row groups assembled from pages by a schema."""
