"""Distributions of parameters' initial values."""
from weft._weft._initializers import *  # noqa: F403
