"""Precompiled headers: parsed once, and loaded by every source file that the targets of weft.bzl compile.

Most of the time to compile a file goes into reading the headers of the standard library, Abseil and GoogleTest.
A source file still includes what it uses, as GCC is only told to load the precompiled headers first. If the instruction
sets of a compilation differ from those of the precompiled header, GCC ignores it and reads the headers themselves. Other
options, such as -ffp-contract, GCC takes from the precompiled header without a word: a target must not load one that
was compiled with other options than its own.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join(["#include \"%s\"\n" % name for name in ctx.attr.headers]))
    outputs = [header]

    # Clang stops at options that differ, so it reads the headers themselves.
    if "clang" not in toolchain.compiler_executable and "clang" not in ctx.var.get("CC", ""):
        precompiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
        outputs.append(precompiled)
        options = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = ACTION_NAMES.cpp_compile,
            variables = cc_common.create_compile_variables(
                feature_configuration = features,
                cc_toolchain = toolchain,
                user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
                use_pic = True,
            ),
        )
        ctx.actions.run(
            executable = toolchain.compiler_executable,
            arguments = options + ["-iquote", ctx.label.workspace_root or "."] +
                        ["-x", "c++-header", "-c", header.path, "-o", precompiled.path],
            env = {"PATH": "/usr/local/bin:/usr/bin:/bin"},
            inputs = depset([header] + ctx.files.srcs, transitive = [toolchain.all_files]),
            outputs = [precompiled],
            mnemonic = "CppPrecompile",
            progress_message = "Precompiling headers of %s" % ctx.label.name,
        )
    return [
        DefaultInfo(files = depset(outputs)),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(outputs + ctx.files.srcs))),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    doc = "NAME.h, which includes `headers`, and its precompiled form for compilations with `copts`.",
    attrs = {
        "headers": attr.string_list(mandatory = True),
        "srcs": attr.label_list(allow_files = [".h"], doc = "Those of `headers` that are in this workspace."),
        "copts": attr.string_list(),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
