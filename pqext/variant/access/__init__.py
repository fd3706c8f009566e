"""Access to the value at a path of a variant: lookup, casts, and explosion into rows."""
