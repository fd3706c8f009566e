"""``python -m pqext`` runs the commands."""

from __future__ import annotations

from pqext.cli import main

if __name__ == "__main__":
    main()
