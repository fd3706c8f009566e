"""What is stored of a chunk beside it: page indexes and Bloom filters, written, read and asked."""
