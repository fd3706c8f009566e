"""Key tools that wrap data keys with master keys of a key management service, compatible with parquet-java and pyarrow.
"""
