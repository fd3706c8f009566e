# cython: language_level=3
"""Access to Arrow arrays for the variant kernels. The readers and writers are in the .pxd files."""
from libc.stdint cimport uintptr_t

import pyarrow as pa

from pqext.variant.types import child, plain_binary


cdef const uint8_t *_address(object buffer) except? NULL:
    return <const uint8_t *> <uintptr_t> buffer.address


cdef class BinaryInput:
    def __init__(self, array):
        """Retain `array`, an Arrow array of a binary or string type, which may be a slice."""
        array = plain_binary(array)
        type = array.type
        wide = pa.types.is_large_binary(type) or pa.types.is_large_string(type)
        if not (wide or pa.types.is_binary(type) or pa.types.is_string(type)):
            raise TypeError(f"expected a binary or string array, not {type}")
        validity, offsets, data = array.buffers()
        self.array = array
        self.column.length = len(array)
        self.column.offset = array.offset
        if self.column.length == 0:
            return
        if offsets is None or offsets.size < (array.offset + len(array) + 1) * (8 if wide else 4):
            raise ValueError("the array's offsets buffer is too short")
        if validity is not None and validity.size * 8 < array.offset + len(array):
            raise ValueError("the array's validity buffer is too short")
        if wide:
            self.column.offsets64 = <const int64_t *> _address(offsets)
        else:
            self.column.offsets32 = <const int32_t *> _address(offsets)
        if validity is not None and array.null_count:
            self.column.validity = _address(validity)
        if data is not None and data.size:
            self.column.data = _address(data)
            self.column.data_size = data.size
        else:
            self.column.data = <const uint8_t *> &self.column  # an address for empty values


cdef class VariantInput:
    def __init__(self, array):
        """Retain `array`, a struct array with the binary children `metadata` and `value` in any order."""
        metadata = child(array, "metadata")
        value = child(array, "value")
        if metadata is None or value is None:
            raise TypeError(f"expected struct<metadata: binary, value: binary>, not {array.type}")
        self.array = array
        self.metadata_input = BinaryInput(metadata)
        self.value_input = BinaryInput(value)
        self.metadata = self.metadata_input.column
        self.value = self.value_input.column
        self.length = len(array)
        if self.metadata.length < self.length or self.value.length < self.length:
            raise ValueError("the children of the struct are shorter than the struct")
        self.offset = array.offset
        validity = array.buffers()[0]
        if validity is not None and array.null_count:
            if validity.size * 8 < array.offset + len(array):
                raise ValueError("the array's validity buffer is too short")
            self.validity = _address(validity)
