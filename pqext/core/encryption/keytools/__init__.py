"""Key tools: data keys wrapped with master keys of a key management service, as parquet-java and pyarrow do it."""
