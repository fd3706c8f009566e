"""The data sources ``pqext`` and ``pqext_json``, their registration, and a local session."""
