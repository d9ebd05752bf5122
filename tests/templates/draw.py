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

# What these templates write is compared, or that they fail. # ⏎ and ␍ stand for line ends.
SNIPPETS = r"""
{{ 1 + 2 * 3 - 4 // 3 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7.5 % 2 }} {{ 2 * 0.1 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 }}
{{ 1 / 0 }}
{{ -3 | abs }} {{ -(3) }} {{ +3 }} {{ 3 - -3 }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'b'] ~ {'k': (1,)} ~ () }}
{{ 'a' + 1 }}
{{ 'ab' * 2 }} {{ [1] * 2 }} {{ [1] + [2] }} {{ (1, 2) + (3,) }}
{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 'b' }}
{{ 1 < 'a' }}
{{ 'a' in 'cat' }} {{ 2 in [1, 2] }} {{ 'k' in {'k': 1} }} {{ 1 not in (2, 3) }} {{ not 1 in [1] }}
{{ 1 in 'a' }}
{{ 1 if true }}|{{ 1 if false }}|{{ 1 if false else 2 }}|{{ 1 if false else 2 if false else 3 }}
{{ 'x' or 'y' }} {{ '' or 'y' }} {{ 0 and 1 }} {{ 1 and 2 }} {{ not '' }}
{{ missing }}|{{ missing | length }}|{{ missing ~ 'a' }}|{% for i in missing %}x{% endfor %}|{{ missing == missing2 }}
{{ missing.attribute }}
{{ missing + 1 }}
{{ missing() }}
{{ {'a': 1}.b }}|{{ {'a': 1}['b'] }}|{{ {'a': {'b': 2}}.a.b }}|{{ [[1, 2], [3]].0.1 }}|{{ [1, 2][5] }}|{{ 'abc'[1] }}
{{ {'items': 1}['items'] }} {{ {'items': 1}.items() | list }} {{ {1: 'a', true: 'b', none: 'c'} }}
{{ [1, 2, 3, 4][1:3] }} {{ [1, 2, 3][::-1] }} {{ 'Größe'[1:-1] }} {{ 'abc'[::2] }} {{ [1, 2, 3][-2:] }} {{ (1, 2, 3)[:1] }}
{{ 'abc'[5:] }}|{{ 'abc'[-9:2] }}|{{ [1, 2, 3][10:0:-1] }}|{{ [1,2][:none] }}
{{ "it's" ~ ['it\'s', 'a"b', "\n\t\\", 'é\u00a0\x7f'] }}
{{ "a\x41\u00e9\q" }}
{{ 'one' 'two' }}
{{ 'ß É straße ǆ' | upper }} {{ 'ÉA' | lower }} {{ 'hELLO wORLD-foo (bar) it\'s' | title }} {{ 'hELLO' | capitalize }}
{{ "hELLO wORLD-foo it's x2y".title() }} {{ 'ab'.upper() }} {{ 'AB'.lower() }} {{ 'aB'.capitalize() }}
[{{ ' \t\n\u00a0a ' | trim }}] [{{ 'xxaxx' | trim('x') }}] [{{ ' a '.strip() }}] [{{ 'xyaxy'.strip('xy') }}]
[{{ ' a '.lstrip() }}] [{{ ' a '.rstrip() }}] [{{ '\n\na\n'.lstrip('\n') }}] [{{ 'aab'.rstrip('b') }}]
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ ' a b  c '.split(none, 1) }} {{ ''.split(',') }}
{{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b  c '.rsplit(none, 1) }} {{ ' a b '.rsplit() }} {{ 'a'.split('b')[-1] }} {{ ''.split() }}
{{ 'a'.split('') }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'bc')) }} {{ 'abcb'.find('b') }} {{ 'abcb'.rfind('b') }} {{ 'é1'.find('1') }}
{{ 'abc'.index('z') }}
{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'ab' | replace('', '.') }} {{ 'aXbX' | replace('X', 'y', 1) }}
{{ 'aXbXc'.count('X') }} {{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }} {{ '-'.join(['a', 'b']) }} {{ 'a{}b{}'.format(1, 'x') }}
{{ '{0}{1}{0}{k}{{}}'.format('a', 'b', k=3) }}
{{ [1].append(2) }}
{{ {'a': 1}.update({'b': 2}) }}
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 5) }} {{ {'a': 1}.keys() | list }} {{ {'a': 1}.values() | list }}
{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }} {{ [1, 2] | sort(reverse=true) }}
{{ [{'n': 2}, {'n': 1}] | sort(attribute='n') }} {{ [1, 'a'] | sort }}
{{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }} {{ {'b': 1, 'a': 2} | dictsort(reverse=true) }}
{{ ['a', 'A', 'b', 'a'] | unique | list }} {{ [1, 1, 2] | unique | list }} {{ [3, 1] | min }} {{ ['a', 'B'] | max }}
{{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ [] | first }}|{{ 'abc' | first }} {{ 'abc' | list }} {{ 'abc' | reverse }} {{ [1, 2] | reverse | list }}
{{ [1, none, 'a'] | join('-') }} {{ [{'a': 1}, {'a': 2}] | join(',', attribute='a') }} {{ 'ab' | join('.') }} {{ [] | join }}
{{ [1, 2, 3] | map('string') | join }} {{ [{'a': 1}, {}] | map(attribute='a', default=0) | list }} {{ ['a'] | map('upper') | list }}
{{ [1, 2, 3, 4] | select('odd') | list }} {{ [1, 2, 3] | reject('equalto', 2) | list }} {{ [0, 1, ''] | select | list }}
{{ [{'a': 1}, {'a': 2}, {}] | selectattr('a') | list }} {{ [{'a': 1}, {'b': 2}] | rejectattr('a', 'defined') | list }}
{{ [{'a': {'b': 1}}] | selectattr('a.b', 'eq', 1) | list }} {{ none | selectattr('x') | list }} {{ none | map('upper') | list }}
{{ '42' | int }} {{ '4.7' | int }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ 4.7 | int }} {{ '1.5' | float }} {{ 'x' | float }} {{ true | int }}
{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.345 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.19 | round(1, 'floor') }} {{ 3 | round }}
{{ 'a' | default('b') }} {{ missing | default('b') }} {{ '' | default('b') }}|{{ '' | default('b', true) }} {{ none | d('x', boolean=true) }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(width='>', blank=true) }}|{{ 'a\nb\n' | indent(1) }}
{{ {'a': [1, 2.0, none, true, 'é"\n<'], 'b': {}} | tojson }} {{ [] | tojson(indent=2) }} {{ 'é🙂' | tojson(ensure_ascii=true) }}
{{ {'b': [1, {'c': 2}], 'a': {}} | tojson(indent=2) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}
{{ missing | tojson }}
{{ {1: 2, none: 3, true: 4} | tojson }} {{ 1e20 | tojson }} {{ (1, 2) | tojson }} {{ '/\x7f\x1f' | tojson }}
{{ '<a>' | e }} {{ '<a>' | safe }} {{ 5 | string | length }} {{ {'a': 1} | length }} {{ 'é日' | length }} {{ {'a': 1} | items | list }}
{{ 5 | length }}
{{ 1 is number }} {{ true is number }} {{ true is integer }} {{ 1.0 is float }} {{ 'a' is string }} {{ [] is iterable }} {{ 1 is iterable }}
{{ {} is mapping }} {{ {} is sequence }} {{ 'a' is sequence }} {{ none is none }} {{ none is defined }} {{ missing is undefined }}
{{ true is true }} {{ 1 is true }} {{ false is false }} {{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }}
{{ 1 is eq 1 }} {{ 1 is ne(2) }} {{ 2 is gt 1 }} {{ 'a' is in ['a'] }} {{ 'a' is not in ['a'] }} {{ 1 is not string }} {{ 'a' is equalto 'a' }}
{{ range(3) | list }} {{ range(1, 7, 2) | list }} {{ range(3, 0, -1) | list }} {{ dict(a=1, b=[2]) }} {{ dict({'x': 1}, y=2) }}
{{ range(100001) | list }}
{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}
{% for i in 'ab' %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {{ loop.cycle('x', 'y') }}{{ loop.depth }}{% for j in [1] %}{{ loop.depth }}{% endfor %}{% endfor %}
{% for i in [1, 2, 3, 4] if i is even %}{{ i }}{{ loop.length }}{% else %}none{% endfor %}{% for i in [] %}x{% else %}none{% endfor %}
{% for i in [1, 2, 3, 4] %}{% if i == 2 %}{% continue %}{% elif i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}{% for (a, b) in [(1, 2)] %}{{ a + b }}{% endfor %}{% for k in {'a': 1} %}{{ k }}{% endfor %}
{% for a, b in [[1]] %}{% endfor %}
{% set x = 0 %}{% for i in [1, 2] %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}
{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% set ns.b = i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}
{% set x = 1 %}{% set x.y = 2 %}
{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}{% set u = (1,) %}{{ u }}
{% set x %}a {{ 1 }} b{% endset %}[{{ x }}]{% set y | upper | replace('A', 'z') %}a{% endset %}{{ y }}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=5) }} {{ m(b=1, a=0) }} {{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }} {{ f(2) | length }} {{ f is callable }}
{% macro m() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ m() }}{% macro w(x) %}[{{ caller() }}{{ x }}]{% endmacro %}{% call w(1) %}in{% endcall %}
{% macro w() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) w() %}{{ a + b }}{% endcall %}
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
{{ 1.5 }}{{ 10 }}{{ x.y if x is defined else 'n' }}
{{ [1, [2, [3]]] | string }}{{ '' is string }}{{ 'a' 'b' ~ 'c' }}{{ not true or true }}
{{ 1 is defined and 2 is defined }}{{ (1 is string) or 'z' }}{{ 'x' if 1 is string else 'y' }}
{{ "a" | upper ~ "b" | lower }}{{ 2 + 3 | string | length }}{{ -1 | abs }}{{ (2 | string) + 'x' }}
{{ none | trim }}{{ 5 | upper }}{{ [1] | lower }}{{ true | capitalize }}{{ none ~ missing }}
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
    drawn = {
        "conversations": CONVERSATIONS,
        "settings": settings,
        "cases": cases,
        "snippets": [] if folders else [[each, render(each, {}, CONVERSATIONS[0])] for each in snippets],
    }
    text = json.dumps(drawn, ensure_ascii=False, separators=(",", ":"))
    pathlib.Path(sys.argv[1]).write_bytes(gzip.compress(text.encode(), mtime=0))
    rendered = sum(text is not None for case in cases for texts in case["texts"] for text in texts)
    print(f"{len(cases)} templates, {rendered} texts, {len(drawn['snippets'])} snippets")


main()
