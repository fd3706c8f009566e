"""From a footer to Arrow arrays: row groups, column chunks, pages and assembly."""
