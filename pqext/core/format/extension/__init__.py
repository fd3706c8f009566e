"""Binary protocol extensions (field 32767): of a structure, by metadata path, framed, and in a container."""
