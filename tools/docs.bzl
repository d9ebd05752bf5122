"""Code that stands in documentation, as source files, so that tests can compile and run it."""

def cpp_from_markdown(name, src, blocks = []):
    """Writes the ```cpp blocks of a Markdown file to NAME.cc, with #line directives that point into the page.

    Args:
      name: the target's name.
      src: the Markdown file.
      blocks: which blocks, counted from 1; all of them if empty. One that the page lacks fails the build.
    """
    wanted = ",".join([str(block) for block in blocks])
    native.genrule(
        name = name,
        srcs = [src],
        outs = [name + ".cc"],
        cmd = """awk -v wanted='{wanted}' '
            BEGIN {{ count = split(wanted, list, ","); for (i = 1; i <= count; ++i) pick[list[i]] = 1 }}
            /^```cpp$$/ {{
                inside = ++block && (count == 0 || block in pick)
                if (inside) {{ print "#line " NR + 1 " \\"" FILENAME "\\""; ++found }}
                next
            }}
            /^```/ {{ inside = 0 }}
            inside {{ print }}
            END {{ exit found == 0 || found < count }}
        ' $< > $@""".format(wanted = wanted),
    )
