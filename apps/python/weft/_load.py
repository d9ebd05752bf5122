"""Loads the library of SentencePiece before the module weft._weft.

SentencePiece has a copy of protobuf, of another version than that of the module, under the same names. A library that
is loaded alone finds its own copy first, and keeps it.
"""
import ctypes
import glob
import os

_bundled = glob.glob(os.path.join(os.path.dirname(__file__), "..", "weft.libs", "libsentencepiece_train*"))
ctypes.CDLL(_bundled[0] if _bundled else "libsentencepiece_train.so.0")
