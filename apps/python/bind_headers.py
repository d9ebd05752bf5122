"""Binds C++ functions for Python: reads headers, and writes a C++ source with their bindings.

    bind_headers.py ops/ops.h core/initializer.h models/layers.h ... core/program.h > generated.cc

The headers are the only list of functions. LayerNorm(Var x, ...) becomes layer_norm(x, ...) with the same parameters
and defaults. The fields of a struct of options become keyword arguments, and values of an enumeration are texts:
form="tanh" for GeluForm::kTanh. A TensorType is a shape and, as a keyword, a dtype. The comments of the headers are the
documentation. A declaration in ops/ops.h that this script can't read is an error, so no op is left out in silence.
"""
import re
import sys

# For each header: the module or class that gets its functions, and the names of the functions. None means all of them.
LAYERS = "Linear LayerNorm EmbeddingTable FeedForward MixtureOfExperts CountCorrect PaddingMask DocumentMask"
BOUND = {
    "ops/ops.h": ("m", None),
    "core/initializer.h": ("initializers", "Initializer"),
    "models/layers.h": ("models", LAYERS),
    "models/attention.h": ("models", LAYERS),
    "core/tape.h": ("Tape", "Input Parameter FindParameter HasParameter ShareParameters State Group Gradient Probe "
                    "Weights"),
    "core/parameters.h": ("Parameters", "Names ElementCount Save Load"),
    "models/gpt.h": ("Gpt", "Logits"),
    "models/bert.h": ("Bert", "Encode Pool MaskedTokens NextSentence Classify AnswerSpan Replaced Mean ClassifyText "
                      "SentenceEmbedding"),
    "models/transformer.h": ("Transformer", "Logits Loss Encode Decode"),
    "text/tokenizers/tokenizer.h": ("Tokenizer", "Encode Wrap Decode DecodeWithSpecial TokenText"),
}
# Names that differ from the rule, because Python reserves the word or because the words would be divided oddly.
NAMES = {"And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Not": "logical_not", "MatMul": "matmul",
         "MatMulAdd": "matmul_add", "AdamWUpdate": "adamw_update", "HasBF16Products": "has_bf16_products",
         "LeCunGaussian": "lecun_gaussian", "LeCunUniform": "lecun_uniform"}
# The C++ type that pybind11 converts for each type of a parameter.
TYPES = {
    "Var": "Var", "VarSpan": "const std::vector<Var>&", "AxisSpan": "const std::vector<int>&",
    "absl::Span<const int32_t>": "const std::vector<int32_t>&", "Shape": "const std::vector<int64_t>&",
    "DType": "const std::string&", "Tape*": "PyTape*", "Initializer": "const Initializer&",
    "absl::string_view": "const std::string&", "std::string": "const std::string&",
    "const char*": "const std::optional<std::string>&", "int": "int", "int32_t": "int32_t", "int64_t": "int64_t",
    "double": "double", "float": "float", "bool": "bool",
}
RESULTS = ("Var|VarList|BatchNormResult|bool|int64_t|std::vector<std::string>|Initializer|absl::Status|void|ModelInput|"
           "std::string|absl::StatusOr<std::vector<int32_t>>|absl::StatusOr<std::string>")
# Declarations of ops/ops.h that are no ops.
OTHER = r"using |inline constexpr |inline Var operator|std::vector<TensorType> AdafactorStates\("
# How the comment of one function begins. Other comments are about all functions up to the next empty line.
OWN = (r"(Returns|Checks|Computes|Zeroes|Rotates|Replaces|Writes|Records|From now on|For axis|One update|An AxisSpan|"
       r"[a-z]+ ←|The |A |Normalises|Names|`gain`)|[A-Z]\w+ (is|returns|computes) ")


def snake(name):
    return NAMES.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def split(text):
    """Divides a list at commas that are outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "({[<") - (character in ")}]>")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def statements(text):
    """Yields (paragraph, comment above, declaration, comment behind) of each declaration."""
    paragraph, above, code, behind, depth = 0, [], "", [], 0
    for line in text.split("\n"):
        before, _, comment = line.partition("//")
        if not before.strip() and depth == 0 and not code:
            paragraph += not comment
            above = above + [comment.strip()] if comment else []
            continue
        code += " " + before.strip()
        depth += len(re.findall(r"[{(]", before)) - len(re.findall(r"[})]", before))
        if comment and depth == 0:
            behind.append(comment.strip())
        if depth <= 0 and code.rstrip()[-1] in ";}:":
            yield paragraph, " ".join(above), code.strip(), " ".join(behind)
            code, above, behind, depth = "", [], [], 0


def fields(body):
    """Yields (type, name, default) of the fields of a struct."""
    body = re.sub(r"auto Fields\(\) const \{.*?\};? \}|using .*?;", "", body)
    for declaration in body.split(";"):
        match = re.match(r"\s*(const char|[\w:<>]+) (.*)", declaration)
        for each in split(match[2]) if match else []:
            name, _, default = each.partition("=")
            star = name.strip().startswith("*")
            yield match[1] + "*" * star, name.strip(" *"), default.strip() or "{}"


class Header:
    def __init__(self, path):
        self.path, self.structs, self.enums, self.functions = path, {}, {}, []
        text = open(path, encoding="utf-8").read()
        text = text[text.index("namespace weft {") + len("namespace weft {"):text.rindex("}  // namespace weft")]
        self.scope, names = BOUND.get(path, ("", ""))
        self.is_class = self.scope[:1].isupper()
        if self.is_class:
            before, _, text = text.partition(f"class {self.scope} {{")
            self.structs = {match[1]: list(fields(match[2])) for _, _, code, _ in statements(before)
                            if (match := re.fullmatch(r"struct (\w+) \{(.*)\};", code))}
            text = text[text.index("public:") + 7:text.index("private:")]
        found, comments = [], {}
        for paragraph, above, code, behind in statements(text):
            index = len(found)  # of the function that this statement declares, or of the next one
            pattern = rf"(?:inline |constexpr )*({RESULTS}) (\w+)\((.*?)\)(?: const)?(?:;| \{{.*\}})$"
            if match := re.fullmatch(r"struct (\w+) \{(.*)\};", code):
                self.structs[match[1]] = list(fields(match[2]))
            elif match := re.fullmatch(r"enum (?:class )?(\w+)(?: : uint8_t)? \{(.*)\};", code):
                self.enums[match[1]] = [value.strip() for value in match[2].split(",")]
            elif match := re.match(pattern, code):
                found.append((match[2], match[1], split(match[3]), paragraph, behind))
            elif names is not None:
                continue
            elif not re.match(OTHER, code):
                sys.exit(f"bind_headers: {path}: can't read {code}")
            if above and (re.match(OWN, above) or not self.is_class):
                comments.setdefault(paragraph, []).append((index, above))
        for i, (name, result, parameters, paragraph, behind) in enumerate(found):
            if names is None or name in names.split() or result == names:
                documentation = self.document(i, [each[0] for each in found], comments.get(paragraph, []), behind)
                self.functions.append((name, result, parameters, documentation))

    @staticmethod
    def document(i, names, texts, behind):
        name = names[i]
        own = [text for at, text in texts if at == i and re.match(OWN, text)] + ([behind] if behind else [])
        shared = [text for at, text in texts if at <= i and not re.match(OWN, text) and len(text) > 60]
        if not own:
            word = re.match(r"[A-Z][a-z]+", name)[0]  # HeUniform has the comment of HeGaussian
            near = [text for at, text in texts if at <= i and re.match(OWN, text) and names[at].startswith(word)]
            mentions = [text for at, text in texts if at <= i and re.search(rf"\b{name}\b", text)]
            own = mentions or near or shared[1:][-1:]
        return "\n\n".join(own + shared[:1])


class Binding:
    """The parameters of one function: what C++ gets, and those of a lambda and of Python, by position or by name."""

    def __init__(self, structs, enums, scope, parameters):
        self.structs, self.enums, self.scope = structs, enums, scope
        self.passed, self.shown, self.keywords, self.spans = [], [], [], []
        for parameter in parameters:
            declared, _, default = parameter.partition("=")
            type_, name = re.fullmatch(r"(?:const )?([\w:<>* ]+?)&? (\w+)", declared.strip()).groups()
            default = default.strip() or None
            if default and type_ not in {**TYPES, **structs, **enums, "TensorType": 0}:
                break  # this parameter and those after it keep their defaults
            if type_ in structs and type_ != "Initializer":
                values = [f".{n} = {self.add(t, n, d, self.keywords)}" for t, n, d in structs[type_]]
                self.passed.append(f"{type_}{{{', '.join(values)}}}")
            elif type_ == "TensorType":
                shape = self.add("Shape", "shape", None, self.shown)
                self.passed.append(f"TensorType{{{self.add('DType', 'dtype', 'kF32', self.keywords)}, {shape}}}")
            else:
                to = self.keywords if self.keywords and default else self.shown
                self.passed.append(self.add(type_, name, default, to))

    def add(self, type_, name, default, to):
        """Adds a parameter to the list `to` and returns its value in C++."""
        value = name
        if type_ in self.enums:
            shown = default.split("::")[-1] if default else None
            default = f'"{snake(shown[1:])}"' if shown else None
            type_ = f"Parameters::{type_}" if self.scope == "Parameters" else type_
            values = self.enums[type_.split("::")[-1]]
            choices = ", ".join(f'{{"{snake(each[1:])}", {type_}::{each}}}' for each in values)
            taken, value = "const std::string&", f'Choose<{type_}>("{name}", {name}, {{{choices}}})'
        elif type_ == "Var" and default:
            taken, default, value = "const std::optional<Var>&", "py::none()", f"{name}.value_or(Var())"
        elif type_ == "const char*":
            taken, value = TYPES[type_], f"{name} ? {name}->c_str() : nullptr"
            default = "py::none()" if default == "nullptr" else default
        elif type_ in ("DType", "Shape"):
            taken, value = TYPES[type_], f"To{type_}({name})"
            default = f'std::string(Name({default}))' if default else None
        elif type_ in TYPES:
            taken = TYPES[type_]
            if type_ == "VarSpan" and not self.shown:
                self.spans.append(name)
            default = "py::tuple()" if default and type_ == "VarSpan" else default
        else:
            sys.exit(f"bind_headers: no conversion for {type_} {name}")
        to.append((f"{taken} {name}", f'py::arg("{name}")' + (f" = {default}" if default else "")))
        return value


def bind(header, structs, enums):
    """Prints the bindings of a header's functions."""
    if header.is_class:
        path = f'attr("{header.scope}")'
        if header.path.startswith("models/"):
            path = f'attr("_models").attr("_{header.scope}")'
        print(f"  {{ py::class_<{header.scope}> type(m.{path});")
    for name, result, parameters, documentation in header.functions:
        binding = Binding(structs, enums, header.scope, parameters)
        call = f"{'self.' if header.is_class else ''}{name}({', '.join(binding.passed)})"
        checks = "".join(f'NotEmpty("{snake(name)}", {span}); ' for span in binding.spans)
        body = f"{call}; Raise(self.status());" if result == "void" else f"return Recorded({call});"
        own = f"{'Py' if header.scope == 'Tape' else ''}{header.scope}& self"
        taken = [own] * header.is_class + [each for each, _ in binding.shown + binding.keywords]
        shown = [each for _, each in binding.shown] + ["py::kw_only()"] * bool(binding.keywords)
        shown += [each for _, each in binding.keywords]
        to = "type" if header.is_class else header.scope
        print(f'  {to}.def("{snake(name)}", []({", ".join(taken)}) {{ {checks}{body} }},')
        print(f'    {"".join(each + ", " for each in shown)}R"doc({documentation})doc");')
    if header.is_class:
        print("  }")


def main():
    headers = [Header(path) for path in sys.argv[1:]]
    structs = {name: rows for header in headers for name, rows in header.structs.items()}
    enums = {name: values for header in headers for name, values in header.enums.items()}
    print("// The bindings of functions of headers, written by apps/python/bind_headers.py.")
    print('#include "weft/apps/python/bind.h"')
    print("".join(f'#include "weft/{header.path}"\n' for header in headers))
    print("namespace weft {\n\nvoid BindGenerated(py::module_ m) {")
    for module in ("initializers", "models"):
        print(f'  py::module_ {module} = m.def_submodule("_{module}");')
    for header in headers:
        bind(header, structs, enums)
    print("}\n\n}  // namespace weft")


if __name__ == "__main__":
    main()
