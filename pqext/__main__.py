"""Run the ``pqext`` command as ``python -m pqext``."""

from __future__ import annotations

from pqext.cli import main

if __name__ == "__main__":
    main()
