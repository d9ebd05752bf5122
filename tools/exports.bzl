"""What Weft exports to other workspaces: every library that its root package may see."""

ExportedHeadersInfo = provider(
    doc = "The public headers of exported libraries.",
    fields = {"headers": "depset of File"},
)

def _exports_impl(ctx):
    headers = []
    nested = []
    for library in ctx.attr.deps:
        if ExportedHeadersInfo in library:
            nested.append(library[ExportedHeadersInfo].headers)
        else:
            headers += library[CcInfo].compilation_context.direct_public_headers
    return [
        cc_common.merge_cc_infos(cc_infos = [library[CcInfo] for library in ctx.attr.deps]),
        ExportedHeadersInfo(headers = depset(headers, transitive = nested)),
    ]

exports = rule(
    implementation = _exports_impl,
    doc = "A library that stands for all of `deps`, which are libraries or other `exports`.",
    attrs = {"deps": attr.label_list(mandatory = True, providers = [CcInfo])},
    provides = [CcInfo],
)

def package_exports(name = "exports"):
    """Exports those libraries of a package that the root package may see. Stands last in its BUILD file.

    A library without a visibility of its own has its package's, and is exported.

    Args:
      name: the target's name.
    """
    exports(
        name = name,
        visibility = ["//:__pkg__"],
        deps = sorted([
            ":" + rule["name"]
            for rule in native.existing_rules().values()
            if rule["kind"] == "cc_library" and not rule.get("testonly", False) and
               (not rule["visibility"] or [group for group in rule["visibility"] if "//:" in group])
        ]),
    )

def _exported_headers_impl(ctx):
    headers = []
    exported = ctx.attr.library[ExportedHeadersInfo].headers
    for header in exported.to_list():
        path = header.path.partition("/_virtual_includes/")[2]  # LIBRARY/weft/FOLDER/NAME.h
        if path:
            headers.append(path.partition("/")[2])
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.write(source, "".join(
        ["#include \"%s\"\n" % header for header in sorted(headers)] +
        ["#include \"gtest/gtest.h\"\n", "TEST(ExportedHeaders, CompileAndLink) { EXPECT_GT(%d, 100); }\n" % len(headers)],
    ))
    return [DefaultInfo(files = depset([source]), runfiles = ctx.runfiles(transitive_files = exported))]

exported_headers = rule(
    implementation = _exported_headers_impl,
    doc = "Writes NAME.cc, a GoogleTest that includes every public header that `library` exports. The headers are its runfiles.",
    attrs = {"library": attr.label(mandatory = True, providers = [ExportedHeadersInfo])},
)
