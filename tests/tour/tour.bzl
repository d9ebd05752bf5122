"""Tests of docs/tour/ and of pages like its chapters: a test runs the page as a reader does."""

load("//tools:docs.bzl", "cpp_from_markdown")
load("//tools:weft.bzl", "weft_binary", "weft_test")

def chapter(name, program = False, size = "medium", folder = "docs/tour"):
    """A test of the page FOLDER/NAME.md.

    Args:
      name: the page's name.
      program: whether the page has a C++ program.
      size: how long the test may run, as in Bazel.
      folder: the page's folder.
    """
    path = "%s/%s.md" % (folder, name)
    page = "//:" + path
    if program:
        cpp_from_markdown(
            name = name,
            src = page,
        )
        weft_binary(
            name = name + "_program",
            testonly = True,
            srcs = [name],
            deps = ["//:weft"],
        )
    weft_test(
        name = name + "_test",
        size = size,
        srcs = [],
        args = [path],
        data = [page, "//:tour_files"] + ([name + "_program"] if program else []),
        main = ":chapter_test_main",
    )
