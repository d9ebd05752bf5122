"""Targets whose headers are included as "weft/FOLDER/NAME.h", here and in the workspaces that depend on us."""

COPTS = ["-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Wno-sign-compare"]

# For code that runs briefly, such as most tests and the commands, which parse flags and print: to optimize it takes
# longer than to run it.
UNOPTIMIZED_COPTS = ["-O0", "-U_FORTIFY_SOURCE"]

def _prelude(name, deps):
    """Returns (copts, deps) that make a target load the precompiled header `name` of third_party/BUILD.bazel.

    The targets that use SentencePiece do without: its headers declare an absl::string_view of their own, beside which
    Abseil's can't be read.
    """
    if [dep for dep in deps if dep.startswith("//third_party:sentencepiece")]:
        return [], []
    prelude = ["//third_party:" + name]
    if "//third_party:json" in deps:
        name += "_json"
        prelude = ["//third_party:" + name, "//third_party:json_instances"]
    repository = native.repository_name()[1:]  # empty in this workspace, and Weft's name in those that depend on it
    folder = "external/%s/third_party" % repository if repository else "third_party"
    return ["-include", "$(BINDIR)/%s/%s.h" % (folder, name)], prelude

def weft_library(name, copts = [], deps = [], optimize = True, **kwargs):
    """A library of NAME.cc and NAME.h, those that are there, unless srcs and hdrs say otherwise.

    Args:
      name: the target's name.
      copts: options of the compiler.
      deps: what the library uses.
      optimize: whether the library's own code is optimized; not needed for code that runs briefly.
      **kwargs: passed on to cc_library.
    """
    srcs = kwargs.pop("srcs", native.glob([name + ".cc"]))

    # GCC takes options such as -ffp-contract from a precompiled header, in place of those of the compilation. So a
    # library with options of its own compiles without it.
    prelude_copts, prelude_deps = [], []
    if srcs and not copts:
        prelude_copts, prelude_deps = _prelude("prelude" if optimize else "unoptimized_prelude", deps)
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = kwargs.pop("hdrs", native.glob([name + ".h"])),
        copts = prelude_copts + COPTS + ([] if optimize else UNOPTIMIZED_COPTS) + copts,
        include_prefix = "weft/" + native.package_name(),
        linkstatic = True,
        deps = deps + prelude_deps,
        **kwargs
    )

def weft_binary(name, deps = [], optimize = True, **kwargs):
    """A program of the given sources. Unless `optimize` is true, its own code is not optimized."""
    prelude_copts, prelude_deps = _prelude("prelude" if optimize else "unoptimized_prelude", deps)
    native.cc_binary(
        name = name,
        copts = prelude_copts + COPTS + ([] if optimize else UNOPTIMIZED_COPTS),
        deps = deps + prelude_deps,
        **kwargs
    )

def weft_test(name, deps = [], size = "small", main = "//third_party:gtest_main", optimize = False, **kwargs):
    """A test of NAME.cc, unless srcs says otherwise.

    Args:
      name: the target's name.
      deps: what the test uses, GoogleTest excepted.
      size: how long it may run, as in Bazel.
      main: the library that has its main function, or None if the sources have it.
      optimize: whether the test's own code is optimized too, for tests that would run for long without.
      **kwargs: passed on to cc_test.
    """
    prelude_copts, prelude_deps = _prelude("prelude" if optimize else "unoptimized_prelude", deps)
    native.cc_test(
        name = name,
        size = size,
        srcs = kwargs.pop("srcs", [name + ".cc"]),
        copts = prelude_copts + COPTS + ([] if optimize else UNOPTIMIZED_COPTS),
        linkstatic = True,
        deps = deps + ([main] if main else []) + prelude_deps,
        **kwargs
    )

def weft_page(name, src = None, styles = [], scripts = []):
    """A page of HTML, or another text, as a library: NAME.h declares the text, as kGraphPage if NAME is graph_page.

    FillPage of lab/page.h puts data in place of its /*DATA*/.

    Args:
      name: the target's name, and the header's.
      src: the page; by default NAME.html.
      styles: files that take the place of the page's line /*STYLES*/, one after the other.
      scripts: files that take the place of the page's line /*SCRIPTS*/, likewise.
    """
    folder, constant = native.package_name(), "k" + "".join([word.capitalize() for word in name.split("_")])
    page = src or name + ".html"
    native.genrule(
        name = name + "_source",
        srcs = [page] + styles + scripts,
        outs = [name + ".h", name + ".cc"],
        cmd = """
            {{
                echo '// What a browser shows, as text.'
                echo '#ifndef {guard}'
                echo '#define {guard}'
                echo 'namespace weft {{ extern const char {constant}[]; }}'
                echo '#endif'
            }} > $(location {name}.h)
            {{
                echo '#include "weft/{folder}/{name}.h"'
                echo 'const char weft::{constant}[] ='
                awk 'function insert(list,  files, count, i, line) {{
                         count = split(list, files, " ")
                         for (i = 1; i <= count; ++i) while ((getline line < files[i]) > 0) print line
                     }}
                     $$0 == "/*STYLES*/" {{ insert("{styles}"); next }}
                     $$0 == "/*SCRIPTS*/" {{ insert("{scripts}"); next }}
                     {{ print }}' $(location {page}) |
                    od -An -v -tx1 | sed 's/ /\\\\x/g; s/.*/    "&"/'
                echo '    "";'
            }} > $(location {name}.cc)
        """.format(
            constant = constant,
            folder = folder,
            guard = "WEFT_{}_{}_H_".format(folder, name).upper().replace("/", "_"),
            name = name,
            page = page,
            styles = " ".join(["$(location {})".format(style) for style in styles]),
            scripts = " ".join(["$(location {})".format(script) for script in scripts]),
        ),
    )
    weft_library(name = name, srcs = [name + ".cc"], hdrs = [name + ".h"])

def weft_list(name, type, include, srcs, function = None):
    """Writes NAME.h and NAME.cc: the list of all constants of one type that some source files define.

    A source defines such a constant at namespace scope, at the beginning of a line: `constexpr TYPE kName = ...`.
    NAME.h declares each of them and `absl::Span<const TYPE* const> FUNCTION()`; NAME.cc defines that function. The
    constants are in the order of their names. The library that compiles `srcs` lists both generated files, too. A new
    constant then needs no line anywhere else. If the order of the constants matters, the library has a table of its own
    in that order: without `function`, NAME.h only declares the constants, and there is no NAME.cc.

    Args:
      name: the target's name, and the header's.
      type: the constants' type, such as `OpDef`.
      include: the header that declares the type.
      srcs: the source files to search.
      function: the name of the function that returns the list, such as `AllOps`; None for declarations only.
    """
    folder = native.package_name()
    list = """
            {{
                echo '#include "weft/{folder}/{name}.h"'
                echo 'namespace weft {{'
                echo 'absl::Span<const {type}* const> {function}() {{'
                echo 'static constexpr const {type}* kList[] = {{'
                for each in $$names; do echo "&$$each,"; done
                echo '}};'
                echo 'return kList;'
                echo '}}'
                echo '}}'
            }} > $(location {name}.cc)
        """ if function else ""
    declare = "echo 'absl::Span<const {type}* const> {function}();'" if function else ""
    native.genrule(
        name = name + "_source",
        srcs = srcs,
        outs = [name + ".h"] + ([name + ".cc"] if function else []),
        cmd = ("""
            names=$$(sed -n -E 's/^constexpr {type} (k[A-Za-z0-9]+) =.*/\\1/p' $(SRCS) | LC_ALL=C sort)
            {{
                echo '// Every {type}, by name. The build writes this file from the sources that define them.'
                echo '#ifndef {guard}'
                echo '#define {guard}'
                echo '#include "absl/types/span.h"'
                echo '#include "{include}"'
                echo 'namespace weft {{'
                for each in $$names; do echo "extern const {type} $$each;"; done
                """ + declare + """
                echo '}}'
                echo '#endif'
            }} > $(location {name}.h)
        """ + list).format(
            folder = folder,
            function = function,
            guard = "WEFT_{}_{}_H_".format(folder, name).upper().replace("/", "_"),
            include = include,
            name = name,
            type = type,
        ),
    )
