"""What stands at a path of a variant: found, cast, exploded into rows."""
