"""Translates what //bench:translate_bench translates in CTranslate2, with the weights of the same run, and prints JSON.

    python3 bench/peers/ctranslate2_translate.py --model=RUN --source=FILE --beam=5 --batch=32 --precision=q8_0

The run is one of `weft train translate` with its default layers: norms first, sinusoidal positions, and one embedding
table for both sides and the output layer. Precision q8_0 is CTranslate2's int8. Needs ctranslate2, numpy, safetensors
and tokenizers of PyPI.
"""
import argparse
import gzip
import json
import pathlib
import resource
import statistics
import tempfile
import time

import ctranslate2
import numpy
from ctranslate2.specs import TransformerSpec, common_spec
from safetensors.numpy import load_file
from tokenizers import Tokenizer

KINDS = {"f32": "float32", "q8_0": "int8"}
MAX_POSITIONS = 512  # CTranslate2 stops a translation at 256 tokens


def sinusoids(positions, width):
    """Returns the table of Vaswani et al. (2017), with sines and cosines in turns."""
    angles = numpy.arange(positions)[:, None] / 10000 ** (numpy.arange(0, width, 2) / width)
    return numpy.stack([numpy.sin(angles), numpy.cos(angles)], axis=-1).reshape(positions, width).astype(numpy.float32)


def specification(run):
    """Returns CTranslate2's description of the run's model, and the tokens of its vocabulary in order."""
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))["model"]
    weights = load_file(run / "model.safetensors")
    ids = Tokenizer.from_file(str(run / "tokenizer.json")).get_vocab()
    tokens = sorted(ids, key=ids.get)
    spec = TransformerSpec.from_config((config["encoder_layers"], config["decoder_layers"]),
                                       config["encoder_attention_heads"], pre_norm=True,
                                       activation=common_spec.Activation.RELU)

    def set_linear(layer, *names):
        layer.weight, layer.bias = (numpy.concatenate([weights[f"{name}.{kind}"] for name in names])
                                    for kind in ("weight", "bias"))

    def set_norm(layer, name):
        layer.gamma, layer.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def set_attention(layer, name, *projections):
        for linear, parts in zip(layer.linear, projections):
            set_linear(linear, *(f"{name}.{part}_proj" for part in parts))
        set_norm(layer.layer_norm, f"{name}_layer_norm")

    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embeddings.weight = weights["shared.weight"]
        stack.scale_embeddings = True
        stack.position_encodings.encodings = sinusoids(MAX_POSITIONS, config["d_model"])
        set_norm(stack.layer_norm, f"{side}.layer_norm")
        for i, layer in enumerate(stack.layer):
            name = f"{side}.layers.{i}"
            set_attention(layer.self_attention, f"{name}.self_attn", "qkv", ["out"])
            if side == "decoder":
                set_attention(layer.attention, f"{name}.encoder_attn", "q", "kv", ["out"])
            set_linear(layer.ffn.linear_0, f"{name}.fc1")
            set_linear(layer.ffn.linear_1, f"{name}.fc2")
            set_norm(layer.ffn.layer_norm, f"{name}.final_layer_norm")
    spec.decoder.projection.weight = weights["shared.weight"]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token = spec.config.decoder_start_token = "<s>"
    spec.config.eos_token, spec.config.add_source_eos, spec.config.unk_token = "</s>", True, tokens[0]
    return spec, tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--source", required=True, help="file with a sentence on each line, perhaps compressed by gzip")
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", choices=KINDS, default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", help="also write the translations to this file")
    flags = parser.parse_args()
    spec, tokens = specification(flags.model)
    tokenizer = Tokenizer.from_file(str(flags.model / "tokenizer.json"))
    with (gzip.open if flags.source.endswith(".gz") else open)(flags.source, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    sources = [[tokens[i] for i in tokenizer.encode(line, add_special_tokens=False).ids] for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        spec.validate()
        spec.optimize(quantization=KINDS[flags.precision])
        spec.save(folder)
        translator = ctranslate2.Translator(folder, device="cpu", compute_type=KINDS[flags.precision], inter_threads=1,
                                            intra_threads=flags.threads)
        seconds = []
        for repeat in range(flags.repeats + 1):
            start = time.perf_counter()
            results = translator.translate_batch(sources, beam_size=flags.beam, max_batch_size=flags.batch)
            if repeat > 0:  # the first repeat allocates memory
                seconds.append(time.perf_counter() - start)
    if flags.out:
        ids = tokenizer.get_vocab()
        texts = [tokenizer.decode([ids[token] for token in result.hypotheses[0]]) for result in results]
        pathlib.Path(flags.out).write_text("\n".join(texts) + "\n", encoding="utf-8")
    print(json.dumps({"sentences_per_second": len(sources) / statistics.median(seconds),
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


main()
