"""Example data that comes with the package; README.md in this folder states its source."""

from __future__ import annotations

from pathlib import Path


def earthquakes() -> Path:
    """The path of one week of USGS earthquakes, a GeoJSON FeatureCollection of 1,707 points with depth."""
    return Path(__file__).with_name("earthquakes.json")
