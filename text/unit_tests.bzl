"""The unit tests of this folder."""

load("//tools:weft.bzl", "weft_test")

# By the name of the unit, what its test needs besides the unit.
_UNIT_TESTS = {
    "gzip": ["//core:file", "//third_party:abseil", "//third_party:zlib"],
    "buckets": [],
    "classifier_input": [":word_piece", "//third_party:abseil"],
    "labelled_examples": ["//third_party:abseil"],
    "lines": ["//core:file", "//third_party:abseil"],
    "masking": [],
    "sentence_pairs": [":byte_tokenizer", ":masking", "//third_party:abseil"],
    "utf8": [],
    "character_tokenizer": [],
    "corpus": [],
    "text_files": ["//third_party:abseil"],
    "token_source": ["//third_party:abseil"],
    "token_files": [":byte_tokenizer", ":load_tokenizer", "//core:file", "//third_party:abseil", "//third_party:json"],
    "tokenize_files": [":byte_tokenizer", ":load_tokenizer", ":token_files", "//core:file", "//third_party:abseil", "//third_party:json"],
    "gpt2_words": [],
    "bpe_merges": [],
    "byte_level_bpe": [":byte_alphabet", ":utf8"],
    "word_piece": [],
    "tokenizer_json": ["//text/learn:learn_tokenizer", "//core:json", "//third_party:json"],
    "load_tokenizer": ["//third_party:abseil", "//third_party:json"],
    "text_stream": [":byte_level_bpe", ":byte_tokenizer", ":load_tokenizer", ":utf8", "//core:file"],
    "table": ["//third_party:abseil"],
    "token_list": [],
    "token_bytes": [":byte_level_bpe", ":byte_tokenizer", ":character_tokenizer", "//text/learn:learn_tokenizer"],
}

# By the name of a part of a unit, what its test needs.
_PART_TESTS = {
    "file_stream": [":gzip", "//core:file", "//third_party:abseil", "//third_party:zlib"],
    "token_sources": [":byte_tokenizer", ":load_tokenizer", ":token_files", "//core:file", "//third_party:abseil"],
}

def unit_tests():
    """A test NAME_test for each row of the two tables."""
    for unit, deps in _UNIT_TESTS.items():
        weft_test(name = unit + "_test", deps = [":" + unit] + deps)
    for name, deps in _PART_TESTS.items():
        weft_test(name = name + "_test", deps = deps)
