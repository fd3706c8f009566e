"""Binary protocol extensions, field 32767: of one structure, by place, framed, several in one, and their first user."""
