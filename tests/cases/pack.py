"""Writes the gzipped file of cases that tests/cases/case_file.h reads.

The file holds 8 bytes of length, a JSON object {"origin": ..., "cases": [...]} of that length, and the elements of all
tensors, each at a multiple of 64 bytes. A case has name, op, opset, attributes, inputs and outputs, or the reason to skip
it, and perhaps a model, in base64. Inputs and outputs are [dtype, shape, offset], or null if an optional one is left
out.
"""
import gzip
import json

import numpy

DTYPES = {"float32": "f32", "float64": "f64", "bool": "bool"}
REASONS = {"float16": "float16", "object": "strings"}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "int64", "uint32", "uint64")
MAX_RANK = 6
LINE = 64


class Skip(Exception):
    pass


class Data:
    def __init__(self):
        self.bytes = bytearray()
        self.known = {}

    def add(self, array):
        """Stores an array and returns its [dtype, shape, offset]. Equal arrays are stored once; integers become i32."""
        array = numpy.asarray(array)
        kind = str(array.dtype)
        if kind in REASONS:
            raise Skip(REASONS[kind])
        if array.ndim > MAX_RANK:
            raise Skip(f"rank {array.ndim}")
        if kind in INTEGERS:
            if array.size and not (-2**31 <= int(array.min()) and int(array.max()) < 2**31):
                raise Skip("an integer does not fit 32 bits")
            dtype, array = "i32", array.astype(numpy.int32)
        elif kind == "bfloat16":
            dtype, array = "bf16", array.view(numpy.uint16)
        elif kind in DTYPES:
            dtype = DTYPES[kind]
        else:
            raise Skip(kind)
        content = array.tobytes()
        key = (dtype, content)
        if key not in self.known:
            self.bytes += bytes(-len(self.bytes) % LINE)
            self.known[key] = len(self.bytes)
            self.bytes += content
        return [dtype, list(array.shape), self.known[key]]


def write(out, origin, cases, data):
    header = json.dumps({"origin": origin, "cases": cases}, separators=(",", ":")).encode()
    header += b" " * (-(len(header) + 8) % LINE)
    with open(out, "wb") as file:
        file.write(gzip.compress(len(header).to_bytes(8, "little") + header + bytes(data.bytes), 9, mtime=0))
