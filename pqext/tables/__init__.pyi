# isort: skip_file

from .opening import open_table as open_table
