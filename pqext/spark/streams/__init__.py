"""Streams of files into data frames, and of data frames into files."""
