"""FlatBuffers footers and Arrow IPC schemas."""
