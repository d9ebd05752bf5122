#!/usr/bin/env python3
"""Writes cases.json: variations of two tokenizer.json, with what Hugging Face's tokenizers make of texts.

Usage: HF_HUB_OFFLINE=1 python3 draw.py    (tokenizers 0.23.3, transformers 5.24)

A case changes the base file at JSON pointers, and may have a tokenizer_config.json. Each row has a text, its ids with
special tokens, its ids where special tokens are ordinary text, and both decoded texts. A case that Weft refuses has the
beginning of the message instead.
"""
import copy
import json
import os
import tempfile

import tokenizers
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import families

BPE_TEXTS = [
    "", "the cat, the hat", " the\tcat", "\tthe", "\u00a0the", "\u3000the", "\nthe", "a<|end|>b", "a <|end|> b",
    "a\u3000<|end|>\u00a0b", "x<|end|><|end|>", "x<|end|>x", "_<|end|>\u00e9", "<|end|>  <|end|>", "a<think>b <think>",
    "<|END|> <THINK>", "<|end|><|end|>the", "a1234 b\u00bd...e!e  \u3000e", "f\u00fcr na\u00efve \u20ac", "<mask>\n<mask>\u2003the", "q\x01\x02q",
]
PIECE_TEXTS = [
    "", "Hello, world! It's don't.", "the [MASK] [mask] [Mask].", "hello[MASK]world", "a [SEP] b", "unknownx the [UNK] the",
    "\u00c9lan \u00e9lan", "a\u0301b the\u200bre", "\u65e5\u672c the", "Foo foo FOO foobar", "x\u3000[MASK]\u00a0the",
    "is n't do not he 's ' a ' the", "thethethethethe", "\u00aa\u03a3 the", "hello . ? ! ,",
]


FAMILY_TEXTS = [
    "", " ", "the cat", " the  cat", "the cat ", "a\u2581b \u2581", "<s>the", "x<s> the<s>", "the\n\tcat", "The CAT's hat, don't!",
    "\u65e5\u672c \U0001f642\U0001f44d\U0001f3fd the", "caf\u00e9 cafe\u0301 \u00c9", "e\u0301\u0323x", "\ufb01ne \u00bd \u2460", "1234 x12",
    "\u00a0the\u3000cat\u2003", "a\r\nb\u200bc\x01\x7f", "``a'' b", "\u0130I\u03a3", "\u1112\u1161\u11ab \ud55c", "\u05e9\u05bc\u05b8 \u0645\u064e\u0631",
    "<0x41> <unk>", "\u03a9\u2126\u212b", "", "zzzz" * 20,
]
CHARACTER_TEXTS = ["", " ", "a", "\n\n\na\r\n  \tb", "caf\u00e9 e\u0301 \u65e5\u672c\U0001f642\U0001f44d\U0001f3fd", "\u180e\u180e\u200d\x85\u2028x\x00\x01",
                   "The cat's hat, don't! It's . ? \u1112\u1161\u11ab"]
LINES = ["the cat sat on the mat, the hat and the rat", "caf\u00e9 12 don't e", "The other cats' hats are that hat."] * 9


def family(name):
    if name == "t5":
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
            for old, new in [("A", "a"), ("E", "e"), ("\u00c9", "\u00e9"), ("e\u0301", "\u00e9"), ("\r", " "), ("\n", " "), ("\ufb01", "fi"),
                             ("\u3000", " "), ("\u00a0", " "), ("\u00bd", "1/2"), ("\u65e5", "the"), ("\x01", ""), ("\U0001f44d", "x")]:
                rules.write(" ".join(f"{ord(c):X}" for c in old) + "\t" + " ".join(f"{ord(c):X}" for c in new) + "\n")
            rules.flush()
            tokenizer, charsmap = families.unigram(LINES, 70, ["<pad>", "<s>", "<unk>"], 2, rules.name)
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        return families.sections(tokenizer, families.precompiled(charsmap))
    return dict(families.character_families(LINES, 330))[name]


def bpe():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=275, special_tokens=["<|end|>", "<mask>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(["the cat sat on the mat, the hat " * 9], trainer)
    return json.loads(tokenizer.to_str())


def word_piece():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##the", "hello", "world", "world", "it", "don", "t",
              "s", "'", ",", "!", ".", "?", "elan", "\u00e9lan", "\u00c9lan", "a", "b", "##b", "re", "##re", "\u65e5",
              "\u672c", "foo", "##bar", "Foo", "FOO", "mask", "[", "]", "is", "n", "do", "not", "he", "\u00aa\u03c3", "@@x"]
    tokenizer = Tokenizer(models.WordPiece({t: i for i, t in enumerate(dict.fromkeys(tokens))}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)])
    return json.loads(tokenizer.to_str())


def word_level():
    tokens = ["<unk>", "<s>", "the", "cat", "The", "CAT", "sat", "on", ",", "!", "don", "'", "t", "caf\u00e9", "\u65e5", "do", "not",
              "the cat", "is", "hats"]
    tokenizer = Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<unk>", "<s>"])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B:1", [("<s>", 1)])
    return json.loads(tokenizer.to_str())


def characters():  # as PublishedCharacters (write_tokenizer_json.cc) writes the tokenizer
    tokenizer = Tokenizer(models.WordLevel({c: i for i, c in enumerate(sorted(set("".join(CHARACTER_TEXTS))))}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r".|\n"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return json.loads(tokenizer.to_str())


def added(text, **flags):
    usual = {"id": None, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}
    return {**usual, **flags}


SIZE = None  # the number of tokens
TEMPLATE = {"type": "TemplateProcessing", "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [0], "tokens": ["<|end|>"]}},
            "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]}
LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
NO_WORDS = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def regex(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def then_level(*steps):
    return {"type": "Sequence", "pretokenizers": [*steps, NO_WORDS]}


CUT = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
PAD = {"strategy": {"Fixed": 30}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 1, "pad_type_id": 0,
       "pad_token": "<mask>"}

# Each case: the base, the changes, and tokenizer_config.json or, as a text, the message of Weft's refusal.
CASES = [
    ("bpe", {}, None),
    ("bpe", {"/added_tokens/0/lstrip": True}, None),
    ("bpe", {"/added_tokens/0/rstrip": True, "/added_tokens/1/lstrip": True, "/added_tokens/1/rstrip": True}, None),
    ("bpe", {"/added_tokens/0/single_word": True}, None),
    ("bpe", {"/added_tokens/0/normalized": True}, None),
    ("bpe", {"/added_tokens/0/special": False}, None),
    ("bpe", {"/added_tokens/2": added("<think>", special=False)}, None),
    ("bpe", {"/added_tokens/2": added("<think>", special=False, normalized=True, single_word=True)}, None),
    ("bpe", {"/added_tokens/2": added("<|end|><|end|>"), "/added_tokens/3": added("|", special=False)}, None),
    ("bpe", {"/added_tokens/2": added("f\u00fcr", special=False), "/added_tokens/3": added("\u20ac")}, None),
    ("bpe", {"/added_tokens/2": added("a", special=False)}, None),
    ("bpe", {"/pre_tokenizer": LEVEL}, None),
    ("bpe", {"/pre_tokenizer": LEVEL, "/added_tokens/0/lstrip": True}, None),
    ("bpe", {"/pre_tokenizer/trim_offsets": False, "/post_processor": None}, None),
    ("bpe", {"/post_processor": TEMPLATE}, None),
    ("bpe", {"/post_processor": {"type": "Sequence", "processors": [LEVEL, TEMPLATE]}}, None),
    ("bpe", {"/post_processor": {"type": "Sequence", "processors": [TEMPLATE, TEMPLATE]}},
     "post_processor: a Sequence of TemplateProcessing and TemplateProcessing is not supported"),
    ("bpe", {"/post_processor": {"type": "RobertaProcessing", "sep": ["<mask>", 1], "cls": ["<|end|>", 0],
                                 "trim_offsets": True, "add_prefix_space": True}}, None),
    ("bpe", {"/post_processor": {"type": "BertProcessing", "sep": ["<mask>", 1], "cls": ["<|end|>", 0]}}, None),
    ("bpe", {"/truncation": CUT, "/padding": PAD}, None),
    ("bpe", {"/model/unk_token": "<mask>"}, None),
    ("bpe", {"/model/unk_token": "<mask>", "missing": ["\u0101", "\u0102"]}, None),
    ("bpe", {"/model/unk_token": "<mask>", "/model/fuse_unk": True, "missing": ["\u0101", "\u0102"]}, None),
    ("bpe", {"/model/ignore_merges": True, "/model/vocab/\u0120na\u00c3\u00afve": SIZE}, None),
    ("bpe", {"/model/dropout": 0.0}, None),
    ("bpe", {"/model/dropout": 0.5}, "model: dropout: 0.5 is not supported"),
    ("bpe", {"/model/byte_fallback": True}, None),
    ("bpe", {"/model/end_of_word_suffix": "</w>", "/model/unk_token": "<mask>"}, None),
    ("bpe", {"/pre_tokenizer/use_regex": False}, None),
    ("bpe", {"/pre_tokenizer": {"type": "Sequence", "pretokenizers": [LEVEL]}}, None),
    ("bpe", {"/pre_tokenizer": then_level(regex("\\s?\\p{L}+|e"))}, None),
    ("bpe", {"/pre_tokenizer": then_level(regex("[ea]", "Removed"))}, None),
    ("bpe", {"/pre_tokenizer": then_level(regex("[ea]+", "Removed", True))}, None),
    ("bpe", {"/pre_tokenizer": then_level(regex("[eat]", "MergedWithPrevious"))}, None),
    ("bpe", {"/pre_tokenizer": then_level(regex("[eat]|", "MergedWithNext"))}, None),
    ("bpe", {"/pre_tokenizer": then_level(regex("[eat]", "Contiguous"))}, None),
    ("bpe", {"/pre_tokenizer": then_level(regex("(a"))},
     "pre_tokenizer: Split: the regular expression (a: at byte 2 of (a: missing closing parenthesis"),
    ("bpe", {"/pre_tokenizer": then_level(regex("a", "Sometimes"))}, "pre_tokenizer: Split: behavior: Sometimes is not supported"),
    ("bpe", {"/pre_tokenizer": then_level({"type": "Split", "pattern": {"String": "."}, "behavior": "Isolated", "invert": False})},
     None),
    ("bpe", {"/pre_tokenizer": then_level({"type": "Digits", "individual_digits": True}, {"type": "Punctuation"})}, None),
    ("bpe", {"/pre_tokenizer": then_level({"type": "Digits", "individual_digits": False},
                                          {"type": "Punctuation", "behavior": "Contiguous"})}, None),
    ("bpe", {"/pre_tokenizer": then_level({"type": "Whitespace"})}, None),
    ("bpe", {"/pre_tokenizer": then_level({"type": "WhitespaceSplit"}, {"type": "CharDelimiterSplit", "delimiter": "e"})}, None),
    ("bpe", {"/pre_tokenizer": then_level({"type": "UnicodeScripts"})}, "pre_tokenizer: its type is 'UnicodeScripts', not one of"),
    ("bpe", {"/normalizer": {"type": "NFC"}}, None),
    ("bpe", {"/normalizer": {"type": "ByteLevel"}, "/pre_tokenizer": None}, None),
    ("bpe", {"/normalizer": {"type": "Strange"}}, "normalizer: its type is 'Strange', not one of"),
    ("bpe", {"/pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        LEVEL, {"type": "Digits", "individual_digits": False}, regex("[0-9][0-9]")]}}, None),
    ("bpe", {"/decoder": {"type": "Sequence", "decoders": [LEVEL, {"type": "Fuse"}]}}, None),
    ("bpe", {"/decoder": {"type": "Sequence", "decoders": [LEVEL, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}, None),
    ("bpe", {"/decoder": None}, None),
    ("bpe", {"/decoder": {"type": "ByteFallback"}}, None),
    ("bpe", {"/decoder": {"type": "CTC"}}, "decoder: its type is 'CTC', not one of"),
    ("bpe", {}, {"eos_token": "<mask>", "bos_token": None, "clean_up_tokenization_spaces": True}),
    ("bpe", {}, {"eos_token": "the", "pad_token": {"__type": "AddedToken", "content": "<|end|>", "lstrip": True,
                                                  "rstrip": False, "normalized": False, "single_word": False}}),
    ("bpe", {}, {"added_tokens_decoder": {"0": {k: v for k, v in added("<|end|>", lstrip=True).items() if k != "id"}},
                 "unk_token": "<|end|>", "extra_special_tokens": ["cat"]}),
    ("wordpiece", {}, None),
    ("wordpiece", {"/normalizer/lowercase": False}, None),
    ("wordpiece", {"/normalizer/lowercase": False, "/normalizer/strip_accents": True}, None),
    ("wordpiece", {"/normalizer/strip_accents": False}, None),
    ("wordpiece", {"/normalizer/clean_text": False, "/normalizer/handle_chinese_chars": False}, None),
    ("wordpiece", {"/normalizer": None}, None),
    # `tokenizers` 0.23 shows a special token whose normalized text differs, although it hides special tokens.
    ("wordpiece", {"/added_tokens/4/normalized": True, "ids only": True}, None),
    ("wordpiece", {"/added_tokens/4/lstrip": True, "/added_tokens/4/rstrip": True}, None),
    ("wordpiece", {"/added_tokens/5": added("Foo", special=False, normalized=True, single_word=True)}, None),
    ("wordpiece", {"/added_tokens/5": added("do not", special=False), "/added_tokens/4/special": False}, None),
    ("wordpiece", {"/decoder": None}, None),
    ("wordpiece", {"/decoder/cleanup": False}, None),
    ("wordpiece", {"/decoder/prefix": "@@"}, None),
    ("wordpiece", {"/decoder": {"type": "Sequence", "decoders": [{"type": "WordPiece", "prefix": "##", "cleanup": True}]}}, None),
    ("wordpiece", {"/decoder": LEVEL}, None),
    ("wordpiece", {"/model/max_input_chars_per_word": 4}, None),
    ("wordpiece", {"/model/continuing_subword_prefix": "@@"}, None),
    ("wordpiece", {"/post_processor": None}, None),
    ("wordpiece", {"/normalizer": {"type": "Sequence", "normalizers": []}}, None),
    ("wordpiece", {"/normalizer": families.sequence({"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"})}, None),
    ("wordpiece", {"/pre_tokenizer": {"type": "Whitespace"}}, None),
    ("wordpiece", {"/model/type": "Words"}, "model: its type is 'Words', not BPE, Unigram, WordLevel or WordPiece"),
    ("llama2", {}, None),
    ("llama2", {"/model/fuse_unk": False, "missing": ["<0xE6>"]}, None),
    ("llama2", {"/model/byte_fallback": False, "/decoder": METASPACE}, None),
    ("llama2", {"/normalizer": None, "/pre_tokenizer": {**METASPACE, "prepend_scheme": "first", "split": False}}, None),
    ("llama2", {"/normalizer": None, "/pre_tokenizer": {**METASPACE, "prepend_scheme": "never"},
                "/decoder": {**METASPACE, "prepend_scheme": "never"}}, None),
    ("llama2", {"/normalizer": families.replace(" ", "\u2581"), "/pre_tokenizer": {
        "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}}, None),
    ("llama2", {"/added_tokens/3": added("cat", special=False, normalized=True)}, None),
    ("llama2", {"/pre_tokenizer": {"type": "Metaspace", "replacement": ""}}, "pre_tokenizer: Metaspace: replacement: it is empty"),
    ("clip", {}, None),
    ("t5", {}, None),
    ("t5", {"/pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]}}, None),
    ("t5", {"/normalizer": families.sequence({"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
                                             families.replace("''", '"'))}, None),
    ("t5", {"/normalizer": families.sequence({"type": "Nmt"}, {"type": "NFKC"}, {"type": "Strip", "strip_left": False, "strip_right": True},
                                             families.replace([" {2,}"], "\u2581"))}, None),
    ("t5", {"/normalizer": {"type": "Strip", "strip_left": True, "strip_right": False}, "/pre_tokenizer": None}, None),
    ("t5", {"/model/unk_id": 99}, "model: unk_id: 99 is not in 0 .."),
    ("t5", {"/normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
     "normalizer: Precompiled: the precompiled map of 3 bytes has an array of 0 bytes"),
    ("t5", {}, {"clean_up_tokenization_spaces": True}),
    ("wordpiece", {}, {"clean_up_tokenization_spaces": True}),
    ("words", {}, None),
    ("words", {}, {"clean_up_tokenization_spaces": True, "mask_token": "cat", "bos_token": "<s>"}),
    ("words", {"/normalizer": {"type": "Lowercase"}, "/pre_tokenizer": {"type": "WhitespaceSplit"}}, None),
    ("words", {"/pre_tokenizer": None, "/post_processor": None, "/decoder": {"type": "Fuse"}}, None),
    ("words", {"/pre_tokenizer": METASPACE, "/normalizer": {"type": "NFC"}, "/model/unk_token": "not"}, None),
    ("words", {"/pre_tokenizer": {"type": "BertPreTokenizer"}, "/decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}, None),
    ("characters", {}, None),
    ("wordpiece", {}, {"mask_token": "mask", "pad_token": "[SEP]", "cls_token": None}),
]
ROLES = ["bos", "eos", "pad", "unk", "mask", "cls", "sep"]


def change(base, changes):
    changed = copy.deepcopy(base)
    vocabulary = changed["model"]["vocab"]
    for pointer, value in changes.items():
        if pointer == "ids only":
            continue
        if pointer == "missing":
            for token in value:
                del vocabulary[token]
            for place, token in enumerate(sorted(vocabulary, key=vocabulary.get)):
                vocabulary[token] = place
            continue
        *path, last = pointer[1:].split("/")
        at = changed
        for key in path:
            at = at[int(key) if isinstance(at, list) else key]
        if isinstance(at, list) and int(last) == len(at):
            at.append(value)
        else:
            at[int(last) if isinstance(at, list) else last] = len(vocabulary) if at is vocabulary else value
    if isinstance(vocabulary, list):
        vocabulary = {token: place for place, (token, _) in enumerate(vocabulary)}
    size = len(vocabulary)
    for token in changed["added_tokens"]:
        token["id"] = vocabulary.get(token["content"], size)
        size += token["id"] == size
    return changed


def rows(file, config, texts):
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    clean, roles = None, None
    if config is not None:
        with tempfile.TemporaryDirectory() as folder:
            for name, value in [("tokenizer.json", file), ("config.json", {}),
                                ("tokenizer_config.json", {**config, "tokenizer_class": "TokenizersBackend"})]:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                    json.dump(value, out)
            clean = transformers.AutoTokenizer.from_pretrained(folder)
        tokenizer = clean.backend_tokenizer
        roles = {role: getattr(clean, role + "_token_id") for role in ROLES if role + "_token" in config}
    result = []
    for text in texts:
        row = {"text": text}
        for key, special in [("ids", False), ("safe", True)]:
            tokenizer.encode_special_tokens = special
            row[key] = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        row["wrapped"] = tokenizer.encode(text).ids
        for key, skip in [("shown", True), ("all", False)]:
            decode = tokenizer.decode if clean is None else clean.decode
            row[key] = decode(row["ids"], skip_special_tokens=skip)
        result.append(list(row.values()))
    return result, roles


def main():
    bases = {"bpe": bpe(), "wordpiece": word_piece(), "words": word_level(), "characters": characters(), **{name: family(name) for name in ["llama2", "clip", "t5"]}}
    texts = {"bpe": BPE_TEXTS, "wordpiece": PIECE_TEXTS, "characters": CHARACTER_TEXTS}
    cases = []
    for base, changes, more in CASES:
        case = {"base": base, "changes": {k: v for k, v in changes.items()}}
        file = change(bases[base], changes)
        case["patch"] = {key: value for key, value in file.items() if value != bases[base][key] and key != "model"}
        if file["model"] != bases[base]["model"]:
            case["patch"]["model"] = {key: value for key, value in file["model"].items()
                                      if value != bases[base]["model"].get(key)}
        if isinstance(more, str):
            case["refused"] = more
        else:
            case["config"] = more
            case["rows"], case["roles"] = rows(file, more, texts.get(base, FAMILY_TEXTS))
            if "ids only" in changes:
                case["rows"] = [row[:4] for row in case["rows"]]
        cases.append(case)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "cases.json"), "w", encoding="utf-8") as out:
        lines = ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases)
        out.write(f'{{"tokenizers":"{tokenizers.__version__}","transformers":"{transformers.__version__}",\n"bases":'
                  f'{json.dumps(bases, separators=(",", ":"))},\n"cases":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
