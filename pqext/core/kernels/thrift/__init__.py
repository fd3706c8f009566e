"""Thrift's compact protocol: structures declared as field tables, and footer fields read without building structures.
"""
