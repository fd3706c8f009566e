"""FlatBuffers footers (experimental): in the extension of a Thrift footer, or as the only footer of a file."""
