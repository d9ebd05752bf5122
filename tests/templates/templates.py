"""The templates of draw.py. Each uses the constructs of the published templates that its name says."""

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
