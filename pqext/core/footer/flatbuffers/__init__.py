"""The FlatBuffers footer: beside the Thrift footer in its extension, or as the only one of a file."""
