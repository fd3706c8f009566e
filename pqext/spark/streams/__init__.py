"""Streams from files into data frames, and from data frames into files."""
