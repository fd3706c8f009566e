"""Stores on disk: objects, folders, keys, and evaluation of filters."""
