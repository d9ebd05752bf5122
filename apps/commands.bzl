"""Groups of commands of the program `weft`."""

load("//tools:weft.bzl", "weft_library")

def weft_commands(name, deps, **kwargs):
    """A library of the commands in this folder, which parse flags, call the library and print.

    Args:
      name: the target's name.
      deps: what the commands use, except what every command uses.
      **kwargs: passed on to weft_library.
    """
    weft_library(
        name = name,
        srcs = kwargs.pop("srcs", native.glob(
            ["*.cc"],
            exclude = ["*_test.cc"],
        )),
        optimize = False,
        visibility = ["//apps:__pkg__"],
        deps = [
            "//apps:commands",
            "//apps:flags",
            "//apps:streams",
            "//base:status",
            "//third_party:abseil",
        ] + deps,
        **kwargs
    )
