"""Measures PyTorch's scaled_dot_product_attention in f32, at the sizes of models in //bench:op_bench.

Prints the median GFLOP/s of 30 runs, forward and with the gradients of query, key and value. As in op_bench, each pair
of positions counts 4 FLOPs for each feature, and 8 more with the gradients, also if a causal mask hides it.

    python3 bench/peers/pytorch_attention.py --threads=1
"""
import argparse
import statistics
import time

import torch

# Batch, heads, positions, features of a head, and whether there is a causal mask.
SIZES = {
    "gpt2": (4, 12, 64, 64, True),
    "bert": (8, 12, 128, 64, False),
    "babygpt": (8, 6, 256, 64, True),
    "charcpu": (12, 4, 64, 32, True),
}


def gflops(batch, heads, positions, width, causal, gradient):
    """Returns the median speed. Heads lie side by side in memory, as in a model."""
    shape = batch, positions, heads, width
    query, key, value = (torch.randn(shape).transpose(1, 2).requires_grad_(gradient) for _ in range(3))
    dy = torch.randn(shape).transpose(1, 2)
    seconds = []
    for _ in range(32):
        start = time.perf_counter()
        y = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        if gradient:
            torch.autograd.grad(y, (query, key, value), dy)
        seconds.append(time.perf_counter() - start)
    flops = (12 if gradient else 4) * batch * heads * positions * positions * width
    return flops / statistics.median(seconds[2:]) * 1e-9


def main():
    """Prints a line for each size."""
    parser = argparse.ArgumentParser(description="Measures attention in PyTorch.")
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    torch.set_num_threads(parser.parse_args().threads)
    for name, sizes in SIZES.items():
        forward, both = (gflops(*sizes, gradient) for gradient in (False, True))
        print(f"{name:<10} forward {forward:6.1f}  with gradients {both:6.1f} GFLOP/s")


main()
