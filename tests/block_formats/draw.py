"""Writes tests/block_formats/blocks.json: blocks of random bytes, and what gguf's Python package makes of them.

For each format, "bytes" holds blocks and "values" the f32 numbers that gguf decodes from them, both as hexadecimal
digits. "numbers" are f32 weights. If gguf can encode a format, "encoded" holds the bytes of "numbers" in it.

    python3 -m pip install gguf numpy
    python3 tests/block_formats/draw.py
"""
import json
import os

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

# The positions of the f16 numbers in a block. Random bits there would be infinities, NaNs and tiny numbers.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208]}
ENCODES = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
ELEMENTS = 512

random = np.random.default_rng(51)
numbers = (random.standard_normal(ELEMENTS) * 0.02).astype(np.float32)
numbers[::97] *= 4  # trained weights have outliers
result = {"numbers": numbers.tobytes().hex(), "formats": {}}
for name, halves in HALVES.items():
    kind = GGMLQuantizationType[name]
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (ELEMENTS // elements, size), dtype=np.uint8)
    for at in halves:
        scales = (random.standard_normal(len(blocks)) * 0.01).astype(np.float16)
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(-1, 2)
    values = dequantize(blocks, kind).astype(np.float32)
    result["formats"][name] = {"bytes": blocks.tobytes().hex(), "values": values.tobytes().hex()}
    if name in ENCODES:
        result["formats"][name]["encoded"] = quantize(numbers, kind).tobytes().hex()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "blocks.json"), "w") as file:
    json.dump(result, file, indent=0)
    file.write("\n")
