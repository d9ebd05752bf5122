"""Measures PyTorch's scaled_dot_product_attention in f32, at one size of attention in //bench:op_bench.

Prints a JSON object: the median GFLOP/s of some runs, forward and with the gradients of query, key and value. As in
op_bench, each pair of positions counts 4 FLOPs for each feature, and 8 more with the gradients, also if a causal mask
hides it.

    python3 bench/peers/pytorch_attention.py --sizes=4,12,64,64 --causal --threads=1
"""
import argparse
import json
import statistics
import time

import torch

from pytorch_step import restart_with_intel_kernels

MIN_SECONDS = 0.5  # minimum sum of the times of the runs that count; at least three runs count


def gflops(batch, heads, positions, width, causal, gradient):
    """Returns the median speed. Heads lie side by side in memory, as in a model."""
    shape = batch, positions, heads, width
    query, key, value = (torch.randn(shape).transpose(1, 2).requires_grad_(gradient) for _ in range(3))
    dy = torch.randn(shape).transpose(1, 2)
    seconds = []
    while len(seconds) < 5 or sum(seconds[2:]) < MIN_SECONDS:
        start = time.perf_counter()
        y = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        if gradient:
            torch.autograd.grad(y, (query, key, value), dy)
        seconds.append(time.perf_counter() - start)
    flops = (12 if gradient else 4) * batch * heads * positions * positions * width
    return flops / statistics.median(seconds[2:]) * 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", required=True, type=lambda text: [int(word) for word in text.split(",")],
                        metavar="B,H,T,D", help="texts, heads, positions of a text, and features of a head")
    parser.add_argument("--causal", action="store_true", help="each position sees itself and those before it")
    parser.add_argument("--threads", type=int, default=1, help="number of threads")
    parser.add_argument("--mkl", choices=("default", "intel"), default="default",
                        help="intel: MKL's kernels for Intel CPUs on any CPU, which are faster on CPUs of AMD")
    flags = parser.parse_args()
    if flags.mkl == "intel":
        restart_with_intel_kernels()
    torch.set_num_threads(flags.threads)
    forward, both = (gflops(*flags.sizes, flags.causal, gradient) for gradient in (False, True))
    print(json.dumps({"forward": forward, "gradient": both}))


if __name__ == "__main__":
    main()
