"""Targets whose headers are included as "weft/FOLDER/NAME.h", here and in the workspaces that depend on us."""

_COPTS = ["-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Wno-sign-compare"]

def weft_library(name, copts = [], **kwargs):
    """A library of NAME.cc and NAME.h, those that are there, unless srcs and hdrs say otherwise."""
    native.cc_library(
        name = name,
        srcs = kwargs.pop("srcs", native.glob([name + ".cc"])),
        hdrs = kwargs.pop("hdrs", native.glob([name + ".h"])),
        copts = _COPTS + copts,
        include_prefix = "weft/" + native.package_name(),
        linkstatic = True,
        **kwargs
    )

def weft_binary(name, **kwargs):
    native.cc_binary(name = name, copts = _COPTS, **kwargs)

def weft_test(name, deps = [], size = "small", **kwargs):
    native.cc_test(
        name = name,
        size = size,
        srcs = kwargs.pop("srcs", [name + ".cc"]),
        copts = _COPTS,
        linkstatic = True,
        deps = deps + ["//third_party:gtest_main"],
        **kwargs
    )

def weft_page(name, constant, **kwargs):
    """A header NAME.h with the text of NAME.html: `inline constexpr char CONSTANT[]` in namespace weft."""
    native.genrule(
        name = name + "_text",
        srcs = [name + ".html"],
        outs = [name + ".h"],
        cmd = """(
            printf '// The text of {name}.html.\\nnamespace weft {{\\ninline constexpr char {constant}[] = R"page('
            cat $<
            printf ')page";\\n}}\\n'
        ) > $@""".format(name = name, constant = constant),
    )
    weft_library(name = name, srcs = [], hdrs = [name + ".h"], **kwargs)
