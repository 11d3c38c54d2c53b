"""Chat templates in the manner of the common model families, as short as they can be with the family's habits."""

from __future__ import annotations

CHATML_DEFAULT_SYSTEM = """\
{%- if messages[0]['role'] == 'system' -%}
{%- set system = messages[0]['content'] -%}{%- set rest = messages[1:] -%}
{%- else -%}
{%- set system = 'You are a helpful assistant.' -%}{%- set rest = messages -%}
{%- endif -%}
<|im_start|>system
{{ system }}<|im_end|>
{% for message in rest %}
{{ '<|im_start|>' ~ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

LLAMA3 = """\
{{- bos_token }}
{%- if not date_string is defined %}{% set date_string = strftime_now("%d %b %Y") %}{% endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}{% set messages = messages[1:] %}
{%- else %}{% set system = '' %}{% endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday: ' + date_string + '\\n\\n' + system + '<|eot_id|>' }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if tools is not none %}{{- tools | tojson }}{% endif %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

MISTRAL = """\
{{ bos_token }}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}{{- '[INST] ' + message['content'] + ' [/INST]' }}
    {%- elif message['role'] == 'assistant' %}{{- message['content'] + eos_token }}
    {%- else %}{{- raise_exception('Only user and assistant roles are supported!') }}{% endif %}
{%- endfor %}"""

GEMMA = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for message in messages %}
    {%- set users_turn = loop.index0 % 2 == 0 %}
    {%- if (message['role'] == 'user') != users_turn %}{{ raise_exception('Roles must alternate') }}{% endif %}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
    {{- '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""

PHI3 = """\
{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

ZEPHYR = """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n' + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

DEEPSEEK_R1 = """\
{%- set ns = namespace(system='') %}
{%- for message in messages if message.role == 'system' %}{% set ns.system = message.content %}{% endfor %}
{{- bos_token + ns.system }}
{%- for message in messages %}
    {%- if message.role == 'user' %}{{- '<|User|>' + message.content }}{% endif %}
    {%- if message.role == 'assistant' and message.content is not none %}
        {%- set content = message.content %}
        {%- if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}
        {{- '<|Assistant|>' + content + '<|end_of_sentence|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|Assistant|><think>\\n' }}{% endif %}"""

QWEN3 = """\
{%- if tools %}{{- '<|im_start|>system\\n# Tools' }}{% for tool in tools %}{{- tool | tojson }}{% endfor %}{% endif %}
{%- set ns = namespace(last_query=messages | length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages | length - 1) - loop.index0 %}
    {%- if message.role == 'user' and not message.content.startswith('<tool_response>') %}
        {%- set ns.last_query = index %}{% break %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{% set content = message.content %}{% else %}{% set content = '' %}{% endif %}
    {%- if message.role == 'assistant' %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}{% set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].split('<think>')[-1].strip() %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and reasoning %}
            {{- '<|im_start|>assistant\\n<think>\\n' + reasoning + '\\n</think>\\n\\n' + content }}
        {%- else %}{{- '<|im_start|>assistant\\n' + content }}{% endif %}
        {%- for call in message.tool_calls or [] %}{{- call.function.arguments | tojson }}{% endfor %}
        {{- '<|im_end|>\\n' }}
    {%- else %}{{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}"""

HARMONY = """\
{%- macro block(role, text) -%}<|start|>{{ role }}<|message|>{{ text }}<|end|>{%- endmacro -%}
{{- block('system', 'You are a model.\\nCurrent date: ' + strftime_now('%Y-%m-%d') + '\\nReasoning: medium') }}
{%- for message in messages -%}
    {%- if message.role in ['system', 'developer'] -%}
        {{- block('developer', '# Instructions\\n\\n' + message.content) }}
    {%- elif message.role == 'assistant' -%}
        {{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
    {%- else -%}{{- block(message.role, message.content) }}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}"""

TYPED_PARTS = """\
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}
    {%- for part in message.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

DROPS_SYSTEM = """\
{% for message in messages %}{% if message.role == 'user' %}USER: {{ message.content }}
{% elif message.role == 'assistant' %}ASSISTANT: {% generation %}{{ message.content }}{% endgeneration %}

{% endif %}{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"""

ASKS_FOR_TOOLS = """\
{%- if tools is defined %}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}
{%- for message in messages %}{{ message.role + ': ' + message.content + '\\n' }}{% endfor %}"""

ESCAPES = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | replace('&', '&amp;') + '<|im_end|>\\n' }}
{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

FAMILIES = {
    "chatml": CHATML_DEFAULT_SYSTEM,
    "llama3": LLAMA3,
    "mistral": MISTRAL,
    "gemma": GEMMA,
    "phi3": PHI3,
    "zephyr": ZEPHYR,
    "deepseek-r1": DEEPSEEK_R1,
    "qwen3": QWEN3,
    "harmony": HARMONY,
    "typed parts": TYPED_PARTS,
    "drops system": DROPS_SYSTEM,
    "asks for tools": ASKS_FOR_TOOLS,
}
