"""Renders chat templates with transformers, and writes what chat_templates_test compares Weft with.

  HF_HUB_OFFLINE=1 python3 tests/templates/draw.py tests/templates/cases.json.gz
  HF_HUB_OFFLINE=1 python3 tests/templates/draw.py /tmp/published.json.gz FOLDER...

The first line draws the file that is committed. Its templates are written for this test; each uses the constructs of
the published templates that its name says. The second line draws every *.jinja in the folders, such as models/templates
of llama.cpp, which the source package of llama-cpp-python on PyPI has, and examples of vLLM. Then run
  WEFT_TEMPLATES=/tmp/published.json.gz bazel test -c opt --test_env=WEFT_TEMPLATES //tests/templates:chat_templates_test
Needs transformers 5.24 and jinja2 3.1.6.
"""

import gzip
import json
import pathlib
import sys

from templates import TEMPLATES
from transformers.utils.chat_template_utils import render_jinja_template

def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


def system(content):
    return {"role": "system", "content": content}


def calls(arguments):
    function = {"name": "weather", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefghi", "function": function}]}


RESULT = {"role": "tool", "name": "weather", "tool_call_id": "abcdefghi", "content": '{"t": 3.5}'}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": 'Weather of a "city".',
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"], "enum": [1, 2.5, True]}},
            "required": [],
        },
    },
}
CONVERSATIONS = [
    [user("Hello")],
    [system("Be brief."), user("Hi there")],
    [user("One"), assistant("Two"), user("Three")],
    [system("  Trim me. /no_think \n"), user("  spaces \n"), assistant(" a\n\nb "), user("last")],
    [user("Größe ß ÉÈ 日本 🙂 \u00a0x"), assistant("'a' \"b\" <i>&amp;</i>"), user("{{ x }} {% y %}")],
    [system(""), user(""), assistant(""), user("")],
    [user("weather?"), calls({"city": "Zürich", "days": 2}), RESULT, user("and now?")],
    [user("think"), assistant("<think>\nhm\n</think>\n\nanswer"), user("again"), assistant("<think>x</think>y")],
    [user([{"type": "text", "text": " part "}, {"type": "image"}])],
    [user("a"), user("b")],
]

# Variables of the snippets, besides those of a chat.
VARIABLES = {"numbers": [1.0, -0.5, 0.1, 1e16, 1e15, 1e-5, 1e-4, 1e22, 123456789.125], "big": 2**62, "none": None}

# What these templates write is compared, or that they fail. # ⏎ and ␍ stand for line ends.
SNIPPETS = r"""
{{ 1 + 2 * 3 - 4 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7 % -3 }} {{ 6 % -3 }} {{ 2 * 3 % 4 }} {{ 1 + 2 ~ 3 * 2 }} {{ true + 1 }}
{{ 1 % 0 }}
{{ -(3) }} {{ 3 - -3 }} {{ - 3 | string | length }} {{ -missing is defined }}
{{ numbers }} {{ numbers[0] }} {{ numbers | tojson }} {{ numbers[2] < 1 }} {{ numbers[0] == 1 }} {{ numbers[0] is number }}
{{ 'a' ~ 1 ~ none ~ true ~ [1, 'b'] ~ {'k': (1,)} ~ () }}
{{ 'a' + 1 }}
{{ 'ab' * 2 }} {{ 'ab' * 0 }}{{ 'ab' * -1 }} {{ [1] + [2] }} {{ (1, 2) + (3,) }}
{{ 1 < 2 }} {{ 2 <= 2 }} {{ 2 > 3 }} {{ 3 >= 4 }} {{ 'a' < 'b' }} {{ true == 1 }} {{ 'a' == 'b' }} {{ 'a' != 1 }} {{ (1 < 2) == true }}
{{ 1 < 'a' }}
{{ 'a' in 'cat' }} {{ 2 in [1, 2] }} {{ 'k' in {'k': 1} }} {{ 1 not in (2, 3) }} {{ not 1 in [1] }} {{ 'x' in missing }}
{{ 1 in 'a' }}
{{ 1 if true }}|{{ 1 if false }}|{{ 1 if false else 2 }}|{{ 1 if false else 2 if false else 3 }}
{{ 'x' or 'y' }} {{ '' or 'y' }} {{ 0 and 1 }} {{ 1 and 2 }} {{ not '' }} {{ '' or 0 or 'z' }} {{ 1 and 0 and missing.a }} {{ 0 or 1 and 2 }}
{{ missing }}|{{ missing | length }}|{{ missing ~ 'a' }}|{% for i in missing %}x{% endfor %}|{{ missing == missing2 }}
{{ missing.attribute }}
{{ missing[0] }}
{{ missing + 1 }}
{{ missing() }}
{{ {'a': 1}.b }}|{{ {'a': 1}['b'] }}|{{ {'a': {'b': 2}}.a.b }}|{{ [[1, 2], [3]].0[1] }}|{{ [1, 2][5] }}|{{ 'abc'[1] }}{{ 'é日'[-1] }}
{{ {'items': 1}['items'] }} {{ {'items': 1}.items() | list }} {{ {1: 'a', true: 'b', none: 'c'} }} {{ {'a': 1, 'a': 2} }}
{{ [1, 2, 3, 4][1:3] }} {{ [1, 2, 3][::-1] }} {{ 'Größe'[1:-1] }} {{ 'abc'[::-1] }} {{ [1, 2, 3][-2:] }} {{ (1, 2, 3)[:1] }}
{{ 'abc'[5:] }}|{{ 'abc'[-9:2] }}|{{ [1,2][:none] }}|{{ [1, 2, 3][2:1] }}|{{ [1, 2][:] }}|{{ 'abc'[:-1] }}
{{ missing[1:] }}
{{ "it's" ~ ['it\'s', 'a"b', "\n\t\\", 'é  \r'] }}
{{ 'ß É straße ǆ' | upper }} {{ 'ÉA' | lower }} {{ 'hELLO wORLD-foo (bar) it\'s' | title }} {{ 'hELLO' | capitalize }}
{{ "hELLO wORLD-foo it's x2y ǆ".title() }} {{ 'ǆa ßA' | capitalize }}
[{{ ' \t\n  a ' | trim }}] [{{ 'xxaxx' | trim('x') }}] [{{ ' a '.strip() }}] [{{ 'xyaxy'.strip('xy') }}]
[{{ ' a '.lstrip() }}] [{{ ' a '.rstrip() }}] [{{ '\n\na\n'.lstrip('\n') }}] [{{ 'aab'.rstrip('b') }}] [{{ 'äaä'.strip('ä') }}]
{{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ ''.split(',') }} {{ 'a'.split('b')[-1] }} {{ 'abab'.split('ab') }}
{{ 'a'.split('') }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.startswith('b') }} {{ 'abc'.endswith('bc') }} {{ 'abc'.endswith('') }}
{{ 'abc'.startswith(1) }}
{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX' | replace('X', 'yy') }} {{ 'aaa' | replace('aa', 'b') }} {{ 5 | replace('5', '6') }}
{{ 'a{}b{}'.format(1, 'x') }} {{ 'a'.format() }}
{{ [1].append(2) }}
{{ {'a': 1}.update({'b': 2}) }}
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 5) }} {{ {1: 2}.get(1) }}
{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ [{'n': 2, 'm': 1}, {'n': 1}, {'n': 2}] | sort(attribute='n') }}
{{ [{'a': {'n': 2}}, {'a': {'n': 1}}] | sort(attribute='a.n') }}
{{ [1, 'a'] | sort }}
{{ {'b': 1, 'A': 2} | dictsort }} {{ [3, 1] | min }} {{ ['b', 'A'] | min }} {{ [] | min }}|
{{ ['a', 'A', 'b', 'a'] | unique | list }} {{ [1, 1, 2] | unique | list }}
{{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ [] | first }}|{{ 'abc' | first }} {{ 'abc' | list }}
{{ [1, none, 'a'] | join('-') }} {{ 'ab' | join('.') }} {{ [] | join }} {{ ['a', 'b'] | join }}
{{ [1, 2, 3] | map('string') | join }} {{ [{'a': 1}, {'a': 2}] | map(attribute='a') | list }} {{ ['a'] | map('upper') | list }}
{{ [1, 2, 3] | reject('equalto', 2) | list }} {{ [0, 1, ''] | select | list }} {{ ['a', 1] | select('string') | list }}
{{ [{'a': 1}, {'a': 2}, {}] | selectattr('a') | list }} {{ [{'a': 1}, {'b': 2}] | rejectattr('a', 'defined') | list }}
{{ [{'a': {'b': 1}}] | selectattr('a.b', 'eq', 1) | list }} {{ none | selectattr('x') | list }} {{ none | map('upper') | list }}
{{ [1] | selectattr('a', 'unknown') | list }}
{{ '42' | int }} {{ '4.7' | int }} {{ 'x' | int }} {{ true | int }} {{ ' 7 ' | int }} {{ numbers[1] | int }}
{{ 'a' | default('b') }} {{ missing | default('b') }} {{ '' | default('b') }}|{{ '' | default('b', true) }} {{ none | default('x', boolean=true) }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(width=1) }}|{{ 'a\nb\n' | indent(1) }}|{{ 'a\r\nb\rc' | indent }}
{{ {'a': [1, none, true, 'é"\n<'], 'b': {}} | tojson }} {{ [] | tojson(indent=2) }} {{ 'é🙂' | tojson(ensure_ascii=true) }}
{{ {'b': [1, {'c': 2}], 'a': {}} | tojson(indent=2) }} {{ {'b': 1, 'a': [2, 3]} | tojson(separators=(',', ':')) }} {{ (1, 2) | tojson }}
{{ missing | tojson }}
{{ '<a>' | safe }} {{ 5 | string | length }} {{ {'a': 1} | length }} {{ 'é日' | length }} {{ {'a': 1} | items | list }}
{{ 5 | length }}
{{ 1 is number }} {{ true is number }} {{ true is boolean }} {{ 'a' is string }} {{ [] is iterable }} {{ 1 is iterable }}
{{ {} is mapping }} {{ {} is sequence }} {{ 'a' is sequence }} {{ none is none }} {{ none is defined }} {{ missing is undefined }}
{{ true is true }} {{ 1 is true }} {{ false is false }} {{ 1 is eq(1) }} {{ 'a' is equalto('b') }} {{ 1 is not string }} {{ not 1 is string }}
{{ range(3) | list }} {{ range(1, 7, 2) | list }} {{ range(3, 0, -1) | list }} {{ dict(a=1, b=[2]) }}
{{ range(100001) | list }}
{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}
{% for i in 'ab' %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {{ loop.depth }}{{ loop.depth0 }}{% endfor %}
{% for i in [1, 2, 3, 4] if i % 2 == 0 %}{{ i }}{{ loop.length }}{% endfor %}{% for i in [] %}x{% endfor %}
{% for i in [1, 2, 3, 4] %}{% if i == 2 %}{% continue %}{% elif i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in [1, 2] %}{% for j in [1, 2] %}{{ j }}{% break %}{% endfor %}{{ i }}{% endfor %}
{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}{% for (a, b) in [(1, 2)] %}{{ a + b }}{% endfor %}{% for k in {'a': 1} %}{{ k }}{% endfor %}
{% for a, b in [[1]] %}{% endfor %}
{% set x = 0 %}{% for i in [1, 2] %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}
{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% set ns.b = i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}
{% set x = 1 %}{% set x.y = 2 %}
{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}{% set u = (1,) %}{{ u }}
{% set x %}a {{ 1 }} b{% endset %}[{{ x }}]
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=5) }} {{ m(b=1, a=0) }} {{ m() }} {{ m(1, missing) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ [m][0](3, 4) }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }} {{ f(2) | length }} {{ f is defined }}
{% macro m() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ m() }}{% macro w(x) %}[{{ caller() }}{{ x }}]{% endmacro %}{% call w(1) %}in{% endcall %}
{% raise %}
{{ raise_exception('no') }}
{{ 1 | unknown }}
{% if false %}{{ 1 | unknown }}{{ 1 is unknown }}{% endif %}ok
{{ 1 }
{{ 'a }}
{% if true %}a
{% endfor %}
{{ (1 }}
{# a comment #}a{#- b -#} c{# {{ x }} #}
a  {%- if true -%}  b  {%- endif -%}  c  {{- 'd' -}}  e
  {% if true %}  x  {% endif %}  y
a⏎  {% if true %}⏎  b⏎  {% endif %}⏎c⏎
a⏎  {%+ if true %}⏎  b⏎  {% endif +%}⏎c⏎⏎
  {{ 'v' }}  ⏎  {# c #}  ⏎  z
⏎⏎{%- if true %}⏎⏎x{% endif %}⏎⏎
a␍⏎{% if true %}␍⏎b␍⏎{% endif %}␍⏎c
{{ {'a': 1,} }}{{ [1, 2,] }}{{ {'a': {'b': '}}'}} }}{{ '%}' }}
{{ strftime_now('%%d') }} {{ 1,2 }}
{{ 10 }}{{ x.y if x is defined else 'n' }}
{{ [1, [2, [3]]] | string }}{{ '' is string }}{{ not true or true }}
{{ 1 is defined and 2 is defined }}{{ (1 is string) or 'z' }}{{ 'x' if 1 is string else 'y' }}
{{ "a" | upper ~ "b" | lower }}{{ 2 + 3 | string | length }}{{ (2 | string) + 'x' }}
{{ none | trim }}{{ 5 | upper }}{{ [1] | lower }}{{ true | capitalize }}{{ none ~ missing }}
{% generation %}a{% endgeneration %}b
""".strip("\n").split("\n")

# Jinja renders these, but no published template uses them. Weft refuses them with the error behind ⇒.
REFUSED = r"""
{{ 7 / 2 }} ⇒ the operator / is not supported
{{ 7 // 2 }} ⇒ the operator // is not supported
{{ 2 ** 3 }} ⇒ the operator ** is not supported
{{ +3 }} ⇒ got '+', wanted an expression
{{ 1 < 2 < 3 }} ⇒ comparisons in a chain are not supported
{{ [1, 2] < [1, 3] }} ⇒ can't compare a list and a list
{{ [1] * 2 }} ⇒ can't compute a list * an int
{{ numbers[0] + 1 }} ⇒ can't compute a float + an int
{{ '%d' % 1 }} ⇒ can't compute a str % an int
{{ big * 4 }} ⇒ an int of more than 64 bits is not supported
{{ 1.5 }} ⇒ only whole decimal numbers are supported
{{ 1e3 }} ⇒ only whole decimal numbers are supported
{{ [[1]].0.0 }} ⇒ only whole decimal numbers are supported
{{ 'a' 'b' }} ⇒ got 'b', wanted }}
{{ "\u00e9" }} ⇒ the escape \u is not supported
{{ "\x41" }} ⇒ the escape \x is not supported
{{ [1, 2, 3][::2] }} ⇒ of slices with a step, only [::-1] is supported
{{ [1, 2, 3][1::-1] }} ⇒ of slices with a step, only [::-1] is supported
{{ {(1, 2): 3} }} ⇒ a tuple is not supported as a key
{{ {1: 2} | tojson }} ⇒ tojson: JSON has no form for all of a dict
{{ -3 | abs }} ⇒ the filter 'abs' is not supported
{{ [1, 2] | batch(1) }} ⇒ the filter 'batch' is not supported
{{ [1] | count }} ⇒ the filter 'count' is not supported
{{ missing | d('x') }} ⇒ the filter 'd' is not supported
{{ '<' | e }} ⇒ the filter 'e' is not supported
{{ '<' | escape }} ⇒ the filter 'escape' is not supported
{{ '1' | float }} ⇒ the filter 'float' is not supported
{{ [1] | max }} ⇒ the filter 'max' is not supported
{{ [1, 2] | reverse | list }} ⇒ the filter 'reverse' is not supported
{{ 25 | round }} ⇒ the filter 'round' is not supported
{{ [{}] | map(attribute='a', default=0) | list }} ⇒ map: the argument 'default' is not supported
{{ [[2, 1]] | map(attribute=1) | list }} ⇒ got an int, wanted a text
{{ ['a'] | map('replace', 'a', 'b') | list }} ⇒ map: got more arguments than (x filter? attribute?)
{{ [1, 2] | sort(true) }} ⇒ sort: only the argument attribute is supported
{{ [1, 2] | sort(reverse=true) }} ⇒ sort: only the argument attribute is supported
{{ {'b': 1} | dictsort(by='value') }} ⇒ dictsort: the argument 'by' is not supported
{{ {'b': 1} | tojson(sort_keys=true) }} ⇒ tojson: the argument 'sort_keys' is not supported
{{ 'a\n\nb' | indent(blank=true) }} ⇒ indent: the argument 'blank' is not supported
{{ [{'a': 1}] | join(',', attribute='a') }} ⇒ join: the argument 'attribute' is not supported
{{ 'ab' | replace('', '.') }} ⇒ got an empty text, wanted one to look for
{{ 'aXbX'.replace('X', '-', 1) }} ⇒ replace: got more arguments than (x old new)
{{ 'x' | int(7) }} ⇒ int: got more arguments than (x)
{{ ' a  b '.split() }} ⇒ split: the argument 'sep' is missing
{{ 'a,b'.rsplit(',', 1) }} ⇒ the function or method '.rsplit' is not supported
{{ 'ab'.upper() }} ⇒ the function or method '.upper' is not supported
{{ 'ab'.find('b') }} ⇒ the function or method '.find' is not supported
{{ 'abc'.endswith(('x', 'bc')) }} ⇒ got a tuple, wanted a text
{{ '{0}{k}'.format('a', k=3) }} ⇒ format: wanted {} once for each argument, and no other braces
{{ [1, 2].index(2) }} ⇒ the function or method '.index' is not supported
{{ {'a': 1}.keys() | list }} ⇒ the method 'keys' is not supported
{{ {'a': 1}.values() | list }} ⇒ the method 'values' is not supported
{{ dict({'x': 1}, y=2) }} ⇒ wanted named arguments only
{{ joiner(',')() }} ⇒ the function or method 'joiner' is not supported
{{ 3 is odd }} ⇒ the test 'odd' is not supported
{{ 9 is divisibleby(3) }} ⇒ the test 'divisibleby' is not supported
{{ 1 is integer }} ⇒ the test 'integer' is not supported
{{ 1 is ne(2) }} ⇒ the test 'ne' is not supported
{{ 'a' is in(['a']) }} ⇒ the test 'in' is not supported
{{ 1 is eq 1 }} ⇒ got '1', wanted }}
{% for i in [1] %}{{ loop.cycle('x', 'y') }}{% endfor %} ⇒ the function or method '.cycle' is not supported
{% for i in [] %}{% else %}none{% endfor %} ⇒ the tag 'else' is not supported here
{% for i in [1] recursive %}{{ i }}{% endfor %} ⇒ got 'recursive', wanted %}
{% set x | upper %}a{% endset %}{{ x }} ⇒ got '|', wanted %}
{% macro w() %}{{ caller(1) }}{% endmacro %}{% call(a) w() %}{{ a }}{% endcall %} ⇒ got '(', wanted a name
{% filter upper %}a{% endfilter %} ⇒ the tag 'filter' is not supported here
{% raw %}{{ x }}{% endraw %} ⇒ the tag 'raw' is not supported here
{% with x = 1 %}{{ x }}{% endwith %} ⇒ the tag 'with' is not supported here
{% block b %}a{% endblock %} ⇒ the tag 'block' is not supported here
""".strip("\n").split("\n")


def render(template, variables, messages):
    """Returns what transformers renders, or None if it fails."""
    try:
        return render_jinja_template(conversations=[messages], chat_template=template, **variables)[0][0]
    except Exception:  # of any kind: the test wants an error
        return None


def main():
    folders = [pathlib.Path(folder) for folder in sys.argv[2:]]
    templates = {path.name: path.read_text("utf-8") for folder in folders for path in sorted(folder.glob("*.jinja"))}
    settings = [
        {"tools": tools, "add_generation_prompt": prompt, "bos_token": "<s>", "eos_token": "</s>", **more}
        for tools, prompt, more in [
            (None, False, {}),
            (None, True, {}),
            ([TOOL], True, {"enable_thinking": False}),
        ]
    ]
    templates = templates or TEMPLATES
    cases = []
    for name, template in templates.items():
        texts = [[render(template, each, messages) for messages in CONVERSATIONS] for each in settings]
        cases.append({"name": name, "template": template, "texts": texts})
    snippets = [snippet.replace("⏎", "\n").replace("␍", "\r") for snippet in SNIPPETS]
    refused = [line.split(" ⇒ ") for line in REFUSED]
    for template, _ in refused:
        assert render(template, VARIABLES, CONVERSATIONS[0]) is not None, template
    drawn = {
        "conversations": CONVERSATIONS,
        "settings": settings,
        "cases": cases,
        "variables": VARIABLES,
        "snippets": [] if folders else [[each, render(each, VARIABLES, CONVERSATIONS[0])] for each in snippets],
        "refused": refused,
    }
    text = json.dumps(drawn, ensure_ascii=False, separators=(",", ":"))
    pathlib.Path(sys.argv[1]).write_bytes(gzip.compress(text.encode(), mtime=0))
    rendered = sum(text is not None for case in cases for texts in case["texts"] for text in texts)
    print(f"{len(cases)} templates, {rendered} texts, {len(drawn['snippets'])} snippets, {len(refused)} refused")


main()
