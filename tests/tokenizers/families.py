#!/usr/bin/env python3
"""Writes a folder with a tokenizer.json of each published family, as the family's own file has its sections.

Usage: python3 families.py OUT TEXT...    (tokenizers 0.23.3, sentencepiece 0.2)

The vocabularies are small and learnt from the lines of the texts; all other sections are those of the published files.
"""
import base64
import io
import json
import os
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = ["\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
            r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"
MARK = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
BEGIN = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])


def lines_of(paths):
    lines = []
    for path in paths:
        with open(path, encoding="utf-8", newline="\n") as file:
            lines += [line.rstrip("\n") for line in file]
    return lines


def byte_level(lines, special, pre, size, normalizer=None, post=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = post or processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return json.loads(tokenizer.to_str())


def split(*patterns, behavior="isolated", invert=False):
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), behavior, invert) for p in patterns] + [level])


def character_bpe(lines, size, post=BEGIN):
    """BPE of characters with a token for each byte, as Llama 2 and Gemma have it."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"] + BYTES, limit_alphabet=150, show_progress=False))
    tokenizer.post_processor = post
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = file["added_tokens"][:3]
    file["pre_tokenizer"] = None
    return file


def unigram(lines, size, special, unknown, rules=None, byte_fallback=False):
    """The pieces that SentencePiece learns behind `special`, and its normalization: nmt_nfkc, or a file of rules."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for line in lines if line.strip()]), model_writer=out, vocab_size=size,
        model_type="unigram", normalization_rule_tsv=rules or "", character_coverage=0.999, num_threads=1, minloglevel=2,
        hard_vocab_limit=False, byte_fallback=byte_fallback)
    model = sentencepiece_model_pb2.ModelProto.FromString(out.getvalue())
    pieces = [(piece.piece, piece.score) for piece in model.pieces[3:]]
    tokenizer = Tokenizer(models.Unigram([(s, 0.0) for s in special] + pieces, unk_id=unknown, byte_fallback=byte_fallback))
    tokenizer.add_special_tokens(special)
    return tokenizer, model.normalizer_spec.precompiled_charsmap


def precompiled(charsmap):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}


def sections(tokenizer, normalizer):
    file = json.loads(tokenizer.to_str())
    file["normalizer"] = normalizer
    return file


def replace(old, new):
    return {"type": "Replace", "pattern": {"String" if isinstance(old, str) else "Regex": old if isinstance(old, str) else old[0]},
            "content": new}


def sequence(*normalizers_):
    return {"type": "Sequence", "normalizers": list(normalizers_)}


def byte_families(lines, size):
    level = pre_tokenizers.ByteLevel
    llama3 = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        "<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", [("<|begin_of_text|>", 0)])])
    yield "llama3", byte_level(lines, ["<|begin_of_text|>", "<|end_of_text|>"], split(LLAMA3), size, post=llama3, ignore_merges=True)
    yield "qwen2", byte_level(lines, ["<|endoftext|>", "<|im_start|>"], split(QWEN2), size, normalizers.NFC())
    yield "gpt4", byte_level(lines, ["<|endoftext|>"], split(LLAMA3, behavior="removed", invert=True), size)
    yield "o200k", byte_level(lines, ["<|endoftext|>"], split(O200K), size)
    yield "deepseek", byte_level(lines, ["<\uff5cbegin\u2581of\u2581sentence\uff5c>"], split(*DEEPSEEK), size,
                                 normalizers.Sequence([]))
    yield "starcoder", byte_level(lines, ["<|endoftext|>"], pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), level(add_prefix_space=False)]), size)
    yield "falcon", byte_level(lines, ["<|endoftext|>"], pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation("contiguous"), level(add_prefix_space=False), pre_tokenizers.Digits(),
         pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]), size)
    yield "bloom", byte_level(lines, ["<unk>", "<s>"], split(BLOOM), size)
    roberta = byte_level(lines, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], level(add_prefix_space=False), size,
                         post=processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False))
    roberta["added_tokens"][4]["lstrip"] = True
    yield "roberta", roberta


def character_families(lines, size):
    llama2 = character_bpe(lines, size)
    llama2["normalizer"] = sequence({"type": "Prepend", "prepend": MARK}, replace(" ", MARK))
    fallback, fuse = {"type": "ByteFallback"}, {"type": "Fuse"}
    llama2["decoder"] = {"type": "Sequence", "decoders": [replace(MARK, " "), fallback, fuse,
                                                          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    yield "llama2", llama2
    metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": False}
    yield "mistral", {**llama2, "normalizer": None, "pre_tokenizer": metaspace}
    yield "gemma", {**llama2, "normalizer": replace(" ", MARK),
                    "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
                    "decoder": {"type": "Sequence", "decoders": [replace(MARK, " "), fallback, fuse]}}
    clip = Tokenizer(models.BPE(unk_token="<|endoftext|>", continuing_subword_prefix="", end_of_word_suffix="</w>"))
    clip.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    clip.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"),
                             "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    clip.decoder = decoders.BPEDecoder("</w>")
    clip.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>",
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    clip.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False)
    yield "clip", json.loads(clip.to_str())


def unigram_families(lines, size):
    t5, charsmap = unigram(lines, size, ["<pad>", "</s>", "<unk>"], 2)
    t5.pre_tokenizer = pre_tokenizers.Metaspace()
    t5.decoder = decoders.Metaspace()
    t5.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    spaces = {"type": "Strip", "strip_left": False, "strip_right": True}
    yield "t5", sections(t5, sequence(precompiled(charsmap), spaces, replace([" {2,}"], MARK)))
    xlmr, charsmap = unigram(lines, size, ["<s>", "<pad>", "</s>", "<unk>"], 3)
    xlmr.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    xlmr.decoder = decoders.Metaspace()
    xlmr.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)])
    yield "xlmr", sections(xlmr, precompiled(charsmap))
    xlmr.pre_tokenizer = pre_tokenizers.Metaspace()
    yield "mbart", sections(xlmr, sequence(precompiled(charsmap), replace([" {2,}"], " ")))
    albert, charsmap = unigram(lines, size, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], 1)
    albert.pre_tokenizer = pre_tokenizers.Metaspace()
    albert.decoder = decoders.Metaspace()
    albert.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)])
    yield "albert", sections(albert, sequence(replace("``", '"'), replace("''", '"'), {"type": "NFKD"}, {"type": "StripAccents"},
                                              {"type": "Lowercase"}, precompiled(charsmap)))
    nmt, _ = unigram(lines, size, ["<pad>", "</s>", "<unk>"], 2, byte_fallback=True)
    nmt.pre_tokenizer = pre_tokenizers.Metaspace()
    nmt.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    yield "nmt", sections(nmt, sequence({"type": "Nmt"}, {"type": "NFKC"}, replace([" {2,}"], " ")))


def word_piece_families(lines, size):
    for name, lowercase in [("bert-uncased", True), ("bert-cased", False)]:
        bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        bert.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        bert.decoder = decoders.WordPiece()
        bert.train_from_iterator(lines, trainers.WordPieceTrainer(
            vocab_size=size, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=200, show_progress=False))
        bert.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)])
        yield name, json.loads(bert.to_str())
    bert.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    bert.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous")])
    yield "words", json.loads(bert.to_str())


def families(lines, size):
    for kind in (byte_families, character_families, unigram_families, word_piece_families):
        yield from kind(lines, size)


def main():
    out, texts = sys.argv[1], sys.argv[2:]
    for name, file in families(lines_of(texts), 4000):
        os.makedirs(os.path.join(out, name), exist_ok=True)
        with open(os.path.join(out, name, "tokenizer.json"), "w", encoding="utf-8") as handle:
            json.dump(file, handle, ensure_ascii=False)
        print(name, len(file["model"]["vocab"]), "tokens", flush=True)


if __name__ == "__main__":
    main()
