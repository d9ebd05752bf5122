"""Draws the shapes and numbers of cases from a seed, and keeps the table of functions that draw cases, by op."""
import random

import numpy as np
import torch


class Draw:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.g = np.random.default_rng(seed)

    def shape(self, low=1, high=4, largest=5):
        return [self.r.randint(1, largest) for _ in range(self.r.randint(low, high))]

    def floats(self, shape, low=-2.0, high=2.0):
        return torch.tensor(self.g.uniform(low, high, shape), dtype=torch.float64)

    def ints(self, shape, below):
        return torch.tensor(self.g.integers(0, below, shape), dtype=torch.int64)

    def bools(self, shape):
        return torch.tensor(self.g.integers(0, 2, shape), dtype=torch.bool)

    def broadcast(self):
        """Returns two shapes that broadcast."""
        shape = self.shape()
        other = [1 if self.r.random() < 0.3 else n for n in shape][self.r.randint(0, len(shape) - 1):]
        return (shape, other) if self.r.random() < 0.5 else (other, shape)

    def axes(self, rank):
        return sorted(self.r.sample(range(rank), self.r.randint(1, rank)))


CASES = {}


def case(f):
    CASES[f.__name__.rstrip("_")] = f
    return f
