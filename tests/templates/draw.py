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

from transformers.utils.chat_template_utils import render_jinja_template

BOS_THEN_ROLES = """{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('roles must alternate: user, assistant') }}{% endif %}"""

TEMPLATES = {
    "chatml": """{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
""",
    "llama 2": """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}
{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}{% set system = false %}{% endif %}
{%- for m in rest %}
{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
{%- if loop.index0 == 0 and system != false %}{% set text = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}
{%- else %}{% set text = m['content'] %}{% endif %}
{%- if m['role'] == 'user' %}{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}
{%- elif m['role'] == 'assistant' %}{{ ' '  + text.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""",
    "llama 3": """{% set loop_messages = messages %}{% for m in loop_messages %}
{%- set text = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n'+ m['content'] | trim + '<|eot_id|>' %}
{%- if loop.index0 == 0 %}{% set text = bos_token + text %}{% endif %}{{ text }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}""",
    "llama 3.1 with tools": """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- The message of the system goes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|start|>system<|end|>\\n\\nToday Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system }}{{- "<|eot|>" }}
{%- for m in messages %}
    {%- if not (m.role == 'ipython' or m.role == 'tool' or 'tool_calls' in m) %}
        {{- '<|start|>' + m['role'] + '<|end|>\\n\\n'+ m['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in m %}
        {%- if not m.tool_calls|length == 1 %}
            {{- raise_exception("only one call is supported") }}
        {%- endif %}
        {%- set call = m.tool_calls[0].function %}
        {{- '{"name": "' + call.name + '", ' }}{{- '"parameters": ' }}{{- call.arguments | tojson }}{{- "}" }}
    {%- elif m.role == "tool" or m.role == "ipython" %}
        {%- if m.content is mapping or m.content is iterable %}
            {{- m.content | tojson }}
        {%- else %}
            {{- m.content }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant<|end|>\\n\\n' }}
{%- endif %}
""",
    "qwen 2.5": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You help.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- endif %}
{%- for m in messages %}
    {%- if (m.role == "user") or (m.role == "system" and not loop.first) or (m.role == "assistant" and not m.tool_calls) %}
        {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' }}
    {%- elif m.role == "assistant" %}
        {{- '<|im_start|>' + m.role }}
        {%- if m.content %}
            {{- '\\n' + m.content }}
        {%- endif %}
        {%- for call in m.tool_calls %}
            {%- if call.function is defined %}
                {%- set call = call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}{{- call.name }}{{- '", "arguments": ' }}
            {{- call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif m.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}{{- m.content }}{{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "qwen 3": """{%- set ns = namespace(multi_step_tool=true, last=messages|length - 1) %}
{%- for m in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and m.role == "user" and m.content is string and not(m.content.startswith('<tool_response>') and m.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- if m.content is string %}{%- set content = m.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if m.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if m.reasoning_content is string %}
            {%- set reasoning = m.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and reasoning)) %}
            {{- '<|im_start|>' + m.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + m.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "mistral 1": BOS_THEN_ROLES + """{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}{% elif \
m['role'] == 'assistant' %}{{ m['content'] + eos_token}}{% else %}{{ raise_exception('only user and assistant') }}\
{% endif %}{% endfor %}""",
    "mistral nemo": """{%- if messages[0]["role"] == "system" %}
    {%- set system = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set users = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for m in loop_messages %}
    {%- if not (m.role == "tool" or m.role == "tool_results" or (m.tool_calls is defined and m.tool_calls is not none)) %}
        {%- if (m["role"] == "user") != (ns.index % 2 == 0) %}{{- raise_exception("roles must alternate") }}{%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for m in loop_messages %}
    {%- if m["role"] == "user" %}
        {%- if tools is not none and (m == users[-1]) %}
            {{- "[AVAILABLE_TOOLS][" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system is defined %}
            {{- "[INST]" + system + "\\n\\n" + m["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST]" + m["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif (m.tool_calls is defined and m.tool_calls is not none) %}
        {{- "[TOOL_CALLS][" }}
        {%- for call in m.tool_calls %}
            {%- set out = call.function|tojson %}
            {{- out[:-1] }}
            {%- if not call.id is defined or call.id|length != 9 %}
                {{- raise_exception("ids must have 9 characters") }}
            {%- endif %}
            {{- ', "id": "' + call.id + '"}' }}
        {%- endfor %}
        {{- "]" + eos_token }}
    {%- elif m["role"] == "assistant" %}
        {{- m["content"] + eos_token}}
    {%- elif m["role"] == "tool" %}
        {%- if m.content is defined and m.content.content is defined %}
            {%- set content = m.content.content %}
        {%- else %}
            {%- set content = m.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS]{"content": ' + content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}
        {{- raise_exception("unknown role") }}
    {%- endif %}
{%- endfor %}
""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}
{%- for m in messages %}{% if (m['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = m['role'] %}
{%- endif %}{{ '<start_of_turn>' + role + '\\n' + m['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}""",
    "gemma 3": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for m in loop_messages -%}
    {%- set role = "model" if m['role'] == 'assistant' else m['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (prefix if loop.first else "") }}
    {%- if m['content'] is string -%}
        {{ m['content'] | trim }}
    {%- elif m['content'] is iterable -%}
        {%- for item in m['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
""",
    "phi 3": """{% for m in messages %}{% if m['role'] in ['system', 'user'] and m['content'] %}
{{'<|' + m['role'] + '|>\\n' + m['content'] + '<|end|>\\n'}}{% elif m['role'] == 'assistant' %}
{{'<|assistant|>\\n' + m['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}""",
    "phi 4": """{% for m in messages %}{% if (m['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + m['content'] + \
'<|im_end|>'}}{% elif (m['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' ~ m['content'] ~ '<|im_end|>'}}{% endif %}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}""",
    "smollm 2": """{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You help.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + m['role'] + '
' + m['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "smollm 3": """{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{%- if enable_thinking -%}{%- set mode = "/think" -%}{%- else -%}{%- set mode = "/no_think" -%}{%- endif -%}
{{- "<|im_start|>system\\n" -}}
{%- if messages[0].role == "system" -%}
  {%- set system = messages[0].content -%}
  {%- if "/no_think" in system -%}{%- set mode = "/no_think" -%}{%- endif -%}
  {%- set instructions = system.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{{- "Mode: " ~ mode ~ "\\n" -}}
{%- if instructions -%}{{- instructions + "\\n\\n" -}}{%- endif -%}
{{- "<|im_end|>\\n" -}}
{%- for m in messages -%}
    {%- set content = m.content if m.content is string else "" -%}
    {%- if m.role == "user" -%}
        {{ "<|im_start|>" + m.role + "\\n"  + content + "<|im_end|>\\n" }}
    {%- elif m.role == "assistant" -%}
        {% generation %}
        {%- if mode == "/think" -%}
            {{ "<|im_start|>assistant\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}
        {%- else -%}
            {{ "<|im_start|>assistant\\n<think>\\n\\n</think>\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ "<|im_start|>assistant\\n" }}{%- endif -%}
""",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    "deepseek 2": """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}\
{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ 'User: ' + m['content'] + '\\n\\n' }}{% elif \
m['role'] == 'assistant' %}{{ 'Assistant: ' + m['content'] + eos_token }}{% elif m['role'] == 'system' %}\
{{ m['content'] + '\\n\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}""",
    "deepseek r1": """{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system='') %}
{%- for m in messages %}{%- if m['role'] == 'system' %}{% set ns.system = m['content'] %}{%- endif %}{%- endfor %}
{{ bos_token }}{{ ns.system }}{%- for m in messages %}{%- if m['role'] == 'user' %}{%- set ns.is_tool = false -%}
{{'<｜User｜>' + m['content']}}{%- endif %}{%- if m['role'] == 'assistant' and m['content'] is not none %}
{%- set content = m['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}
{{ '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>' }}{%- endif %}{%- if m['role'] == 'tool' %}
{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<｜outputs｜>' + m['content']}}
{%- set ns.is_output_first = false %}{%- else %}{{'\\n' + m['content']}}{%- endif %}{%- endif %}{%- endfor -%}
{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\\n'}}{% endif %}""",
    "command r": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}
{%- set system = messages[0]['content'] %}{% elif false == true %}{% set loop_messages = messages %}
{%- set system = 'You are Command.' %}{% else %}{% set loop_messages = messages %}{% set system = false %}{% endif %}
{%- macro turn(role, content, end='<|END|>') %}<|START|><|{{ role | upper }}|>{{ content.strip() }}{{ end }}{% endmacro %}
{%- if system != false %}{{ turn('system', system) }}{% endif %}
{%- for m in loop_messages %}{{ turn(content=m['content'], role={'user': 'user', 'assistant': 'chatbot'}[m['role']]) }}
{%- endfor %}{% if add_generation_prompt %}{{ turn('chatbot', '', end='') }}{% endif %}""",
    "granite": """{%- set day = strftime_now('%%') %}{{ day }}
{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}{%- set loop_messages = messages[1:] %}
{%- else %}{%- set system = "Knowledge Cutoff: April 2024." %}{%- if tools and documents %}
{%- set system = system + " Both." %}{%- elif tools %}{%- set system = system + " Tools." %}{%- endif %}
{%- set loop_messages = messages %}{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + system + '<|end_of_text|>\\n' }}
{%- if tools %}{{- '<|start_of_role|>tools<|end_of_role|>' }}{{- tools | tojson(indent=4) }}{{- '<|end_of_text|>\\n' }}
{%- endif %}
{%- for m in loop_messages %}{{- '<|start_of_role|>' + m['role'] + '<|end_of_role|>' + m['content'] + '<|end_of_text|>\\n' }}
{%- if loop.last and add_generation_prompt %}{{- '<|start_of_role|>assistant' }}
{%- if controls %}{{- ' ' + controls | tojson()}}{%- endif %}{{- '<|end_of_role|>' }}{%- endif %}{%- endfor %}""",
    "olmo": """{{ eos_token }}{% for m in messages %}
{% if m['role'] == 'user' %}
{{ '<|user|>
' + m['content'] }}
{% elif m['role'] == 'assistant' %}
{{ '<|assistant|>
'  + m['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    "falcon": """{% for m in messages %}{% if not loop.first %}{{ '\\n' }}{% endif %}{% if m['role'] == 'system' %}
{{- 'System: ' }}{% elif m['role'] == 'user' %}{{- 'User: ' }}{% elif m['role'] == 'assistant' %}{{- 'Falcon: ' }}
{%- endif %}{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}{{ '\\n' + 'Falcon:' }}{% endif %}""",
    "openchat": """{{ bos_token }}{% for m in messages %}{{ 'GPT4 Correct ' + m['role'].title() + ': ' + m['content'] + \
'<|end_of_turn|>'}}{% endfor %}{% if add_generation_prompt %}{{ 'GPT4 Correct Assistant:' }}{% endif %}""",
    "minicpm": """{%- macro fields(value, indent) %}{% set ns = namespace(f=caller()) %}{% for k, v in value | items %}
{{ '\\n' if not loop.first }}{{ indent ~ k }}: {{ v.type if v.type is string else v.type | join(' | ') }}{{ ns.f }}
{%- if loop.index >= 9 %}{% break %}{% else %}{% continue %}{% endif %}{% endfor %}{% endmacro %}
{%- for tool in tools or [] %}{% call fields(tool.function.parameters.properties, '    ') %} # {{ tool.function.name }}
{%- endcall %}{% endfor %}{% for m in messages %}{{ [m.role, m.content] | map('string') | join(': ') | indent(2) }}
{% endfor %}{{ 'assistant:' if add_generation_prompt }}""",
    "jamba": """{% macro one(m) %}{{ m.role }}{% endmacro %}{% macro two(m, i=0) %}{{ i }}:{{ m['content'] }}{% endmacro %}
{%- set macros = [one, two] %}{% for m in messages %}{% for f in macros %}{{ f(*[m]) }};{% endfor %}
{%- endfor %}{{ (messages | map(attribute='role') | unique | list) }}""",
}


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
