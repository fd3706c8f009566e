"""Thrift's compact protocol: structures by field tables, and footer fields read without building structures."""
