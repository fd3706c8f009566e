"""Spark sessions, settings, files, types and errors, shared by all modules of pqext.spark."""
