"""Defines the targets that fuzz readers of files."""

load("//tools:weft.bzl", "weft_binary", "weft_library", "weft_test")

def fuzz_target(name, deps):
    """Makes of NAME_target.cc a test NAME_replay and libFuzzer's program NAME_fuzz, which --config=fuzz builds."""
    weft_library(
        name = name + "_target",
        testonly = True,
        srcs = [name + "_target.cc"],
        hdrs = [
            "memory_file.h",
            "target.h",
        ],
        deps = deps + ["//third_party:abseil"],
    )
    weft_test(
        name = name + "_replay",
        srcs = [],
        main = None,
        deps = [
            ":replay",
            ":" + name + "_target",
        ],
    )
    weft_binary(
        name = name + "_fuzz",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":" + name + "_target"],
    )
