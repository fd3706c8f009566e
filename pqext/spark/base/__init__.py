"""Spark sessions, settings, files, types and errors, shared by all of pqext.spark."""
