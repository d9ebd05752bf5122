"""Reads the declarations of our headers, which have one style: clang-format's, no macros around declarations, and
comments only where clang-format leaves them.

    read("#define A(x) x\\nnamespace weft { struct S { int n = 0; };  Var F(S s) { return {}; } }")
    # [("", "A", "#define A(x)"), ("", "S", "struct S"), ("S", "n", "int n = 0"), ("", "F", "Var F(S s)")]
"""

import re
from typing import NamedTuple


class Declaration(NamedTuple):
    scope: str  # "Parameters::Options", or "" for weft
    name: str
    text: str   # one line, without bodies, the values of constants and what does not concern callers


LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'')
COMMENT = re.compile(LITERAL.pattern + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*\n", re.MULTILINE)
MACRO = re.compile(r"#define (WEFT_\w+)(\(.*?\))")
TYPE = re.compile(r"^(?:template <.*> )?(?:requires.*? )?(class|struct|enum(?: class)?) (?:alignas\(.*?\) )?(\w+)")
OPERATOR = re.compile(r"\boperator\s*(?:\(\)|\[\]|[^\w\s(]+)")
USING = re.compile(r"(?:template <.*> )?using (\w+)")
ATTRIBUTE = re.compile(r" ?\[\[.*?\]\]")
OTHERS = re.compile(r"friend (class|struct) |(class|struct) \w+$|static_assert|(virtual )?~|$")
NOT_CALLERS = re.compile(r"\b(?:inline|extern) | (?:override|final|= default)$")


def plain(text):
    """Returns `text` without attributes."""
    return ATTRIBUTE.sub("", text).strip()


def mask(text):
    """Returns `text` with dots in place of the characters of literals, which may be brackets and commas."""
    return LITERAL.sub(lambda match: "." * len(match[0]), text)


def closing(text, at):
    """Returns the position after the bracket that closes the one at `at`."""
    depth = 0
    for at in range(at, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at + 1
    raise ValueError("unclosed: " + text[:60])


def top_level(text):
    """Returns `text` with dots in place of what stands in brackets or literals, and of operators' signs."""
    text = OPERATOR.sub(lambda match: "operator" + "." * (len(match[0]) - 8), mask(text))
    out, depth = [], 0
    for i, c in enumerate(text):
        opens = c in "([{" or (c == "<" and bool(depth > 0 or re.match(r"\w", text[i - 1]) or text[:i] == "template "))
        closes = c in ")]}" or (c == ">" and depth > 0 and text[i - 1] != "-")
        out.append(c if depth == 0 or (depth == 1 and closes) else ".")
        depth += opens - closes
    return "".join(out)


def split(text, separator=","):
    """Splits `text` at the separators that stand in no brackets."""
    parts, begin = [], 0
    for match in re.finditer(separator, top_level(text)):
        parts.append(text[begin : match.start()].strip())
        begin = match.end()
    return parts + [text[begin:].strip()]


def is_function(text):
    return "(" in top_level(text).split(" = ")[0] and not USING.match(text)


def signature(text):
    """Returns a function's text without the initialisers of a constructor."""
    return re.sub(r"\s+", " ", split(text, r"(?<!:) : (?!:)")[0]).strip()


def name_of(text):
    if pointer := re.search(r"\(\*(\w+)\)", text):
        return pointer[1]
    if using := USING.match(text):
        return using[1]
    shape = top_level(text)
    if is_function(text):
        constraint = re.match(r"(?:template <\.*> )?requires\(\.*\) ", shape)
        begin = constraint.end() if constraint else 0
        return re.search(r"(operator.*|~?\w+)$", text[begin : shape.index("(", begin)])[1].strip()
    return re.search(r"(\w+)(?:\[.*?\])?$", re.split(r" = |\{", shape)[0].strip())[1]


def variables(text, is_field):
    """Yields the text of each variable or field that one declaration declares. Only fields keep their values."""
    first, *others = split(text)
    shape = re.split(r" = |\{", top_level(first))[0]
    base = re.match(r"(.*?)[*&]*\w+(?:\[.*?\])?\s*$", first[: len(shape)])[1].rstrip("*& ")
    for each in [first] + [base + " " + other for other in others]:
        if not is_field or "static " in each:
            each = each[: len(re.split(r" = |\{", top_level(each))[0])]
        yield each.strip()


def read_scope(text, scope, found, public=True, is_type=False):
    """Appends the public declarations in `text`, the inside of a namespace or type, to `found`."""
    shape, at, begin = mask(text), 0, 0
    while at < len(text):
        if label := re.compile(r"\s*(public|private|protected):").match(text, at) if at == begin else None:
            public = label[1] == "public"
            at = begin = label.end()
        elif shape[at] in "([":
            at = closing(shape, at)
        elif shape[at] == ";":
            add(text[begin:at], scope, found, public, is_type)
            at = begin = at + 1
        elif shape[at] == "{":
            head, end = re.sub(r"\s+", " ", text[begin:at]).strip(), closing(shape, at)
            inside = text[at + 1 : end - 1]
            if head == "namespace weft":
                read_scope(inside, scope, found)
            elif match := TYPE.match(plain(head)):
                if public:
                    found.append(Declaration(scope, match[2], head))
                    read_type(inside, match[1], (scope + "::" if scope else "") + match[2], found)
                begin, end = end, text.index(";", end) + 1
                if variable := text[begin : end - 1].strip():
                    add(match[2] + " " + variable, scope, found, public, is_type)
            elif head.startswith("namespace"):
                pass
            elif is_function(head) and (") : " not in head or head[-1] in ")}"):
                add(head, scope, found, public, is_type)
            else:  # an initialiser, which belongs to the declaration
                at = end
                continue
            at = begin = end
        else:
            at += 1


def read_type(inside, kind, scope, found):
    if kind.startswith("enum"):
        for each in filter(None, split(inside)):
            found.append(Declaration(scope, plain(each).split()[0], each.split(" = ")[0]))
    else:
        read_scope(inside, scope, found, public=kind == "struct", is_type=True)


def add(text, scope, found, public, is_type):
    text = re.sub(r"\s+", " ", text).strip()
    bare = plain(text)
    if not public or bare.endswith("= delete") or OTHERS.match(bare):
        return
    if is_function(text):
        texts = [signature(text)]
    elif USING.match(bare):
        texts = [text]
    else:
        texts = variables(text, is_field=is_type)
    for each in texts:
        each = NOT_CALLERS.sub("", NOT_CALLERS.sub("", each))
        found.append(Declaration(scope, name_of(plain(each)), each))


def read(header):
    """Returns the public declarations in the text of a header, in their order."""
    text = COMMENT.sub(lambda match: match[0] if match[0][0] in "\"'" else " ", header)
    found = [Declaration("", m[1], m[0]) for m in MACRO.finditer(text)]
    read_scope(DIRECTIVE.sub("", text), "", found)
    return found
