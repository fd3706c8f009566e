# isort: skip_file

from .backend import CommitStateUnknownError as CommitStateUnknownError, TableConflictError as TableConflictError
from .history import scan_appends as scan_appends
from .leftovers import TableCleanup as TableCleanup, TableDescription as TableDescription
from .leftovers import clean as clean, describe as describe
from .maintenance import TableRewrite as TableRewrite
from .maintenance import compact as compact, recluster as recluster, reshred as reshred
from .opening import open_table as open_table
from .write_plan import TableCommit as TableCommit
from .writing import append as append, overwrite as overwrite, replace_files as replace_files
