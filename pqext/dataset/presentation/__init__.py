"""Values as people and programs without their types read them: text, JSON, WKT and Python objects."""
