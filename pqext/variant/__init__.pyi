# isort: skip_file

from .access.cast import get as get
from .access.explode import explode as explode
from .conversion.arrow import from_arrow as from_arrow
from .conversion.objects import from_python as from_python, to_python as to_python
from .conversion.tables import from_table as from_table, to_table as to_table
from .editing import delete as delete, merge as merge, set as set, strip_nulls as strip_nulls
from .equality import canonical as canonical, equals as equals, hash as hash
from .json.files import JsonReader as JsonReader, read_json as read_json
from .json.parser import parse_json as parse_json, parse_json_lines as parse_json_lines
from .json.text import to_json as to_json
from .rewriting import reshred_file as reshred_file, unshred_file as unshred_file
from .rewrite_report import Rewritten as Rewritten
from .shredding.choice import schema_of_file as schema_of_file
from .shredding.infer import infer_schema as infer_schema
from .shredding.reconstruct import unshred as unshred
from .shredding.schema import shredding_schema as shredding_schema
from .shredding.shredder import shred as shred
from .python import Timestamp as Timestamp
from .types import is_variant_type as is_variant_type, variant_field as variant_field, variant_type as variant_type
from .validation import VariantFault as VariantFault, find_faults as find_faults, validate as validate
from .value import Variant as Variant
