"""Example data that comes with the package; README.md in this folder states its source."""

from __future__ import annotations

from pathlib import Path


def earthquakes() -> Path:
    """Return the path of a GeoJSON file with one week of USGS earthquakes, 1,707 points with depth."""
    return Path(__file__).with_name("earthquakes.json")
