"""Data sources ``pqext`` and ``pqext_json``, their registration, and local sessions."""
