"""Parquet modular encryption: keys and AADs, modules, footers, and key tools that wrap keys with a KMS.

:mod:`pqext.core.options.encryption` contains the classes that users pass. Modules that need AES are imported only
for encrypted files.
"""
