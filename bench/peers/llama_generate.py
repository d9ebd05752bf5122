"""Runs what //bench:generate_bench measures in llama.cpp, with the same sizes and random weights, and prints JSON.

    python3 bench/peers/llama_generate.py --mode=decode --precision=q8_0 --length=128 --files=FOLDER

Needs llama-cpp-python, gguf and numpy of PyPI. The GGUF file of a precision is written to --files once.
"""
import argparse
import json
import pathlib
import resource
import statistics
import time

import gguf
import llama_cpp
import numpy

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 50257, 1024, 12, 12, 768  # gpt2
PROMPT = 16  # tokens of a prompt in mode decode
FORMATS = {"f32": gguf.GGMLQuantizationType.F32, "bf16": gguf.GGMLQuantizationType.BF16,
           "q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}
FILE_TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "bf16": gguf.LlamaFileType.MOSTLY_BF16,
              "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0, "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0}


def write_model(path, precision):
    """Writes a GPT-2 with random weights.

    Matrices have the format `precision`, but the token table has Q8_0 in place of Q4_0, as in Weft. The other weights
    have f32.
    """
    random = numpy.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(4 * WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(1e-5)
    writer.add_file_type(FILE_TYPES[precision])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"t{i}".encode() for i in range(VOCABULARY)])
    writer.add_token_types([1] * VOCABULARY)
    writer.add_token_merges(["t 0"])
    writer.add_bos_token_id(VOCABULARY - 1)
    writer.add_eos_token_id(VOCABULARY - 1)

    def matrix(name, rows, cols, kind):
        values = random.standard_normal((rows, cols), dtype=numpy.float32) * 0.02
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    def vector(name, size, value):
        writer.add_tensor(name, numpy.full(size, value, dtype=numpy.float32))

    kind = FORMATS[precision]
    matrix("token_embd.weight", VOCABULARY, WIDTH, FORMATS["q8_0"] if precision == "q4_0" else kind)
    matrix("position_embd.weight", CONTEXT, WIDTH, FORMATS["f32"])
    for i in range(LAYERS):
        for name, rows, cols in (("attn_qkv", 3 * WIDTH, WIDTH), ("attn_output", WIDTH, WIDTH),
                                 ("ffn_up", 4 * WIDTH, WIDTH), ("ffn_down", WIDTH, 4 * WIDTH)):
            matrix(f"blk.{i}.{name}.weight", rows, cols, kind)
            vector(f"blk.{i}.{name}.bias", rows, 0)
        for name in ("attn_norm", "ffn_norm"):
            vector(f"blk.{i}.{name}.weight", WIDTH, 1)
            vector(f"blk.{i}.{name}.bias", WIDTH, 0)
    vector("output_norm.weight", WIDTH, 1)
    vector("output_norm.bias", WIDTH, 0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Model:
    """A model and a context for `batch` texts."""

    def __init__(self, path, batch, threads):
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = batch * CONTEXT, 512, 512, batch
        params.n_threads = params.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.batch = llama_cpp.llama_batch_init(512, 0, 1)

    def forget(self):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)

    def read(self, rows):
        """Reads rows (token, position, text, whether its logits are wanted), at most 512."""
        for i, (token, position, text, wanted) in enumerate(rows):
            self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i] = token, position, 1
            self.batch.seq_id[i][0], self.batch.logits[i] = text, wanted
        self.batch.n_tokens = len(rows)
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama_decode failed")
        llama_cpp.llama_synchronize(self.context)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("decode", "prefill"), default="decode")
    parser.add_argument("--precision", choices=FORMATS, default="f32")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--files", required=True, help="folder of the GGUF files")
    flags = parser.parse_args()
    path = pathlib.Path(flags.files) / f"gpt2-{flags.precision}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_model(path.with_suffix(".tmp"), flags.precision)
        path.with_suffix(".tmp").rename(path)
    callback = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(callback, None)
    model = Model(path, flags.batch, flags.threads)
    size = PROMPT if flags.mode == "decode" else flags.length
    speeds = []
    for repeat in range(flags.repeats + 1):
        model.forget()
        rows = [(100 + i, i, text, i + 1 == size) for text in range(flags.batch) for i in range(size)]
        start = time.perf_counter()
        for first in range(0, len(rows), 512):
            model.read(rows[first:first + 512])
        if flags.mode == "decode":
            start = time.perf_counter()
            for i in range(flags.length - 1):
                model.read([(1000 + i, size + i, text, True) for text in range(flags.batch)])
        tokens = flags.length - 1 if flags.mode == "decode" else flags.length
        if repeat > 0:  # the first repeat reads the file
            speeds.append(flags.batch * tokens / (time.perf_counter() - start))
    print(json.dumps({"tokens_per_second": statistics.median(speeds),
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


main()
