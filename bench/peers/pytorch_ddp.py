"""Runs the step of //bench:ranks_bench in PyTorch: DistributedDataParallel on Gloo, with the same models and sizes.

Each rank is a process, which this program starts. A rank runs its micro-batches one after the other. During the
backward pass of the last one, it adds the gradients of all ranks, in buckets of DDP's default size.

    python3 bench/peers/pytorch_ddp.py --model=gpt2 --ranks=2 --micro-batches=2 --threads=1 --steps=10
"""
import argparse
import contextlib
import json
import resource
import statistics
import tempfile
import time

import torch
from torch import nn

from pytorch_step import MODELS, LanguageModel, initialize


def run_rank(rank, flags, folder):
    """Runs all steps of one rank. Rank 0 prints the figures of the slowest rank."""
    torch.set_num_threads(flags.threads)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=flags.ranks)
    vocabulary, context, layers, heads, width, batch, length = MODELS[flags.model]
    batch, length, layers = flags.batch or batch, flags.length or length, flags.layers or layers
    width = flags.width or width
    torch.manual_seed(0)
    network = LanguageModel(vocabulary, max(context, length), layers, heads, width, causal=flags.model != "bert")
    network = nn.parallel.DistributedDataParallel(network.apply(initialize), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-4, fused=True)
    mine = flags.micro_batches // flags.ranks
    torch.manual_seed(1 + rank)
    batches = [torch.randint(0, vocabulary, (2, batch, length)).unbind() for _ in range(mine)]

    def step():
        total = 0
        for i, (tokens, targets) in enumerate(batches):
            with contextlib.ExitStack() as stack:
                if i + 1 < mine:
                    stack.enter_context(network.no_sync())
                with torch.autocast("cpu", torch.bfloat16, enabled=flags.precision == "bf16"):
                    loss = network(tokens, targets) / mine
                loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return total

    seconds = []
    for _ in range(flags.steps):
        start = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - start)
    figures = (statistics.median(seconds[2:]), min(seconds[1:]), seconds[0],
               resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    all_figures = [None] * flags.ranks
    torch.distributed.all_gather_object(all_figures, figures)
    if rank == 0:
        median, best, first, memory = map(max, zip(*all_figures))
        print(json.dumps({
            "model": flags.model, "batch": batch, "length": length, "micro_batches": flags.micro_batches,
            "precision": flags.precision, "ranks": flags.ranks, "threads": flags.threads, "median_ms": median * 1e3,
            "best_ms": best * 1e3, "first_step_ms": first * 1e3,
            "tokens_per_second": flags.micro_batches * batch * length / median, "peak_rss_mb": memory, "loss": loss}))
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=[name for name in MODELS if name != "minilm-forward"], default="gpt2")
    parser.add_argument("--batch", type=int, default=0, help="texts in a micro-batch; 0: the model's own number")
    parser.add_argument("--length", type=int, default=0, help="tokens of a text; 0: the model's own number")
    parser.add_argument("--layers", type=int, default=0, help="number of blocks; 0: the model's own number")
    parser.add_argument("--width", type=int, default=0, help="features of a token; 0: the model's own number")
    parser.add_argument("--micro-batches", type=int, default=2, help="micro-batches of a step, of all ranks")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="bf16: autocast")
    parser.add_argument("--ranks", type=int, default=2, help="number of processes")
    parser.add_argument("--threads", type=int, default=1, help="threads of each process")
    parser.add_argument("--steps", type=int, default=10, help="the first two don't count")
    flags = parser.parse_args()
    if flags.steps < 3:
        parser.error("--steps: at least 3")
    if flags.micro_batches < 1 or flags.micro_batches % flags.ranks:
        parser.error("--micro-batches: not a multiple of --ranks")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run_rank, (flags, folder), nprocs=flags.ranks)


if __name__ == "__main__":
    main()
