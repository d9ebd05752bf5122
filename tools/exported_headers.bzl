"""A source file that includes every public header of some libraries."""

def _exported_headers_impl(ctx):
    headers = []
    for library in ctx.attr.deps:
        for header in library[CcInfo].compilation_context.direct_public_headers:
            path = header.path.partition("/_virtual_includes/")[2]  # LIBRARY/weft/FOLDER/NAME.h
            if path:
                headers.append(path.partition("/")[2])
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.write(source, "".join(
        ["#include \"%s\"\n" % header for header in sorted(headers)] +
        ["#include \"gtest/gtest.h\"\n", "TEST(ExportedHeaders, CompileAndLink) { EXPECT_GT(%d, 100); }\n" % len(headers)],
    ))
    return [DefaultInfo(files = depset([source]))]

exported_headers = rule(
    implementation = _exported_headers_impl,
    doc = "Writes NAME.cc, a GoogleTest that includes every public header of the libraries `deps`.",
    attrs = {"deps": attr.label_list(mandatory = True, providers = [CcInfo])},
)
