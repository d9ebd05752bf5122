"""Writes tests/gguf: tiny models of transformers, converted to GGUF by llama.cpp's own convert_hf_to_gguf.py.

expected.json.gz holds, for each file, the logits of the last of some tokens as transformers computes them, and for some
texts the ids that `tokenizers` gives.

    python3 -m pip install torch transformers==5.24.0 tokenizers sentencepiece
    python3 tests/gguf/draw.py LLAMA_CPP      # a folder with llama.cpp's sources, of July 2026
"""
import gzip
import json
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
import gguf
import tokenizers as tk
import torch
import transformers as t
from conversion import get_model_class
from conversion.base import TextModel

HERE = pathlib.Path(__file__).resolve().parent
TEXT = (HERE.parent.parent / "LICENSE").read_text(encoding="utf-8")
TEXTS = ["", "the license", " the  works\n\n of 2026, don't I'LL", "Élan vital: 12345 ½ 東京 🙂\t!!",
         "<|im_start|>user\nhi<|im_end|>", "<tool>x</tool>"]
IDS = [5, 9, 2, 7, 11, 30, 41, 8]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"

SMALL = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2)
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
         r"\s+(?!\S)|\s+")
BYTES = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
P = tk.pre_tokenizers


def split(digits):
    pattern = tk.Regex(SPLIT % digits)
    return P.Sequence([P.Split(pattern, "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])


# By the name of tokenizer.ggml.pre.
PRE = {"gpt-2": BYTES, "smollm": P.Sequence([P.Digits(individual_digits=True), BYTES]), "llama-bpe": split("{1,3}"),
       "qwen2": split("")}

MODELS = {
    "gpt2": (t.GPT2LMHeadModel, dict(n_positions=64, n_ctx=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=0,
                                     eos_token_id=0), "gpt-2", "f32"),
    "llama": (t.LlamaForCausalLM, {**SMALL, "rope_theta": 500.0, "rms_norm_eps": 1e-5}, "smollm", "f32"),
    "llama_f16": (t.LlamaForCausalLM, {**SMALL, "tie_word_embeddings": True}, "qwen2", "f16"),
    "llama_q8_0": (t.LlamaForCausalLM, {**SMALL, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1,
                                        "tie_word_embeddings": True}, "llama-bpe", "q8_0"),
    "llama3": (t.LlamaForCausalLM, {**SMALL, "hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1,
                                    "rope_theta": 500000.0, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}}, "llama-bpe", "f32"),
    "qwen2": (t.Qwen2ForCausalLM, {**SMALL, "rope_theta": 1e6}, "qwen2", "f32"),
    "bert": (t.BertModel, dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                               max_position_embeddings=64), "bert", "f32"),
    "qwen3": (t.Qwen3ForCausalLM, {**SMALL, "head_dim": 8, "tie_word_embeddings": True}, "qwen2", "f32"),
}


def byte_level_tokenizer(folder, pre):
    tokenizer = tk.Tokenizer(tk.models.BPE(ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = PRE[pre]
    tokenizer.decoder = tk.decoders.ByteLevel()
    trainer = tk.trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIAL, show_progress=False,
                                     initial_alphabet=P.ByteLevel.alphabet())
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.add_tokens([tk.AddedToken("<tool>", normalized=False)])
    wrapped = t.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=SPECIAL[1], eos_token=SPECIAL[2],
                                        unk_token=SPECIAL[0], pad_token=SPECIAL[2], chat_template=CHAT)
    wrapped.save_pretrained(folder)
    return wrapped


def bert_tokenizer(folder):
    tokenizer = tk.BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator([TEXT], vocab_size=300, show_progress=False)
    wrapped = t.BertTokenizerFast(tokenizer_object=tokenizer._tokenizer)
    wrapped.save_pretrained(folder)
    return wrapped


def draw(name, kind, sizes, pre, outtype, work):
    torch.manual_seed(7)
    folder = pathlib.Path(work) / name
    tokenizer = bert_tokenizer(folder) if pre == "bert" else byte_level_tokenizer(folder, pre)
    config = kind.config_class(vocab_size=len(tokenizer), **sizes)
    model = kind(config).eval()
    for weight in model.parameters():  # also of norms and biases, which would be ones and zeros
        torch.nn.init.normal_(weight, 1 if weight.dim() == 1 and weight.mean() == 1 else 0, 0.3)
    model.save_pretrained(folder)
    TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    dtype = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16,
             "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}[outtype]
    with torch.no_grad():
        output = model(torch.tensor([IDS]))
        logits = (output.last_hidden_state if pre == "bert" else output.logits)[0, -1]
        get_model_class(kind.__name__)(folder, dtype, HERE / f"{name}.gguf").write()
    return {"logits": [round(float(x), 5) for x in logits],
            "texts": [[text, tokenizer(text, add_special_tokens=False)["input_ids"]] for text in TEXTS]}


def main():
    torch.set_num_threads(1)
    expected = {"ids": IDS}
    with tempfile.TemporaryDirectory() as work:
        for name, row in MODELS.items():
            expected[name] = draw(name, *row, work)
    with open(HERE / "expected.json.gz", "wb") as file:
        file.write(gzip.compress(json.dumps(expected).encode(), mtime=0))


main()
