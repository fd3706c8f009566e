"""Parquet modular encryption: keys and AADs, modules, footers, and the key tools that wrap keys by a KMS.

``properties`` holds what users pass; everything that needs AES is imported when a file is encrypted.
"""
