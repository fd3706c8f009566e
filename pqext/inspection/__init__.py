"""What a file holds, told without reading its data."""
