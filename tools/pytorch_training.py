"""Has what tools/pytorch_gpt and tools/pytorch_translate share: flags, the options of a run, and the training loop."""

import argparse
import json
import math
import random
import sys
import time
from pathlib import Path
from typing import Callable

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(f"{sys.argv[0]}: {sys.executable} has no package torch; wanted PyTorch 2.9 or newer")

# The supported values of options that both scripts support in part only.
KNOWN = {"ablate": ["none"], "activation_dropout": [0], "clip_value": [0], "distance_bias": ["none"],
         "embedding_norm": [False], "gated": [False], "groups": [""], "head_bias": [False], "head_merge": ["project"],
         "init": [""], "initializer": ["default"], "input_noise": [0], "key_value_heads": [0], "key_width": [0],
         "logits_scale": [1], "lora_rank": [0], "micro_batches": [1], "norm_bias": [True], "norm_plus_one": [False],
         "pre_norm": [True], "query_width": [0], "schedule": ["cosine", "linear"], "score": ["dot"],
         "score_scale": [0], "soft_cap": [0], "stride": ["0"], "tied_head": [True], "value_width": [0],
         "window": ["0"], "zero_output": [False]}


def parser(description: str) -> argparse.ArgumentParser:
    """Returns a parser of the folder of a run and of the flags that both scripts have."""
    flags = argparse.ArgumentParser(description=description, allow_abbrev=False,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("run", type=Path, help="the folder of a run of the same training by Weft")
    flags.add_argument("--seconds", type=float, help="time of the training (default: the run's steps)")
    flags.add_argument("--precision", choices=["f32", "bf16"], help="precision of matrix products (default: the run's)")
    flags.add_argument("--threads", type=int, default=0, help="number of threads (default: all cores)")
    return flags


def options(flags: argparse.ArgumentParser, arguments: argparse.Namespace, known: dict,
            equal: dict) -> argparse.Namespace:
    """Returns the options of the run, and sets the number of threads and the seeds. Ends the program if an option has a
    value that neither KNOWN nor `known` has, or another value than the option that `equal` names for it."""
    path = arguments.run / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for key, values in (KNOWN | known | {key: [config[other]] for key, other in equal.items()}).items():
        if config.get(key, values[0]) not in values:
            flags.error(f"{path}: {key} is {config[key]!r}; wanted {' or '.join(map(repr, values))}")
    config["precision"] = arguments.precision or config["precision"]
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(config["seed"])
    random.seed(config["seed"])
    return argparse.Namespace(**config)


def autocast(o: argparse.Namespace):
    """Returns a context in which matrix products have the run's precision."""
    return torch.autocast("cpu", torch.bfloat16, enabled=o.precision == "bf16")


def adamw(o: argparse.Namespace, decayed: list, vectors: list) -> torch.optim.Optimizer:
    """Returns AdamW with the run's weight decay for `decayed` and none for `vectors`."""
    groups = [{"params": decayed, "weight_decay": o.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1.0, betas=(o.beta1, o.beta2), eps=o.epsilon, fused=True)


def rate(o: argparse.Namespace, step: int, passed: float) -> float:
    """Returns the rate of a step, counted from 0, after this share of the training that follows the warm-up."""
    if step < o.warmup_steps:
        return o.learning_rate * (step + 1) / (o.warmup_steps + 1)
    left = 0.5 * (1 + math.cos(math.pi * passed)) if o.schedule == "cosine" else 1 - passed
    return o.min_learning_rate + (o.learning_rate - o.min_learning_rate) * left


def train(o: argparse.Namespace, arguments: argparse.Namespace, model: nn.Module, updates: list,
          loss_of_step: Callable) -> dict:
    """Trains for --seconds if given, where the rate follows the share of this time that has passed, and for the run's
    steps otherwise. `updates` has optimizers with their factors of the learning rate. Returns what the training took."""
    lines, seconds = (arguments.run / "metrics.jsonl").read_text(encoding="utf-8").splitlines(), arguments.seconds
    steps = json.loads(lines[-1])["step"]
    begin, step, share, warm = time.perf_counter(), 0, 0.0, 0.0
    while share < 1:
        if step <= o.warmup_steps:
            warm = share
        for optimizer, factor in updates:
            for group in optimizer.param_groups:
                group["lr"] = factor * rate(o, step, (share - warm) / (1 - warm))
        step += 1
        loss = loss_of_step()
        loss.backward()
        if o.clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), o.clip)
        for optimizer, _ in updates:
            optimizer.step()
            optimizer.zero_grad()
        passed = time.perf_counter() - begin
        share = passed / seconds if seconds else step / steps
        if step % 100 == 0:
            print(f"step {step}  loss {loss.item():.4f}  {passed:.0f} s", flush=True)
    return {"steps": step, "seconds": round(passed, 1), "parameters": sum(w.numel() for w in model.parameters())}
