// Reads any bytes as a chat template, and renders a conversation with it.
#include <nlohmann/json.hpp>
#include <string>

#include "weft/tests/fuzz/files/target.h"
#include "weft/text/templates/jinja_template.h"

namespace weft {

bool accepted = false;

std::vector<std::string> Seeds() {
  return {
      "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m.content | trim }}{% endfor %}",
      "{%- set ns = namespace(a=1, b='x') -%}\n{% for m in messages[::-1] if m.role != 'y' %}\n  {%- set ns.a = ns.a + "
      "1 %}"
      "{{ loop.index0 ~ loop.last }}{% endfor %}{{ ns.a }}",
      "{% macro f(a, b=[1, 2]) %}{{ a | tojson(indent=2) }}{{ b | join(', ') }}{% endmacro %}{{ f({'k': (1, none)}) "
      "}}"
      "{% call f(1) %}x{% endcall %}",
      "{% set x %}a{# c #}b{% endset %}{{ x.split('a', 1)[-1].replace('b', 'cc') | upper if x is string else x[1:-1] "
      "}}",
      "{% for k, v in {'a': 1, 'b': -2 % 3}.items() %}{% if v is number and k in 'ab' %}{% break %}{% endif %}{% "
      "endfor "
      "%}",
      "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | sort | unique | list }}"
      "{{ 'a{}'.format(1) * 3 }}{{ '%s' | indent(2) | title }}{{ \"x\\n\" ~ 15 }}{{ [2, 1] | min ~ {'b': 1} | dictsort "
      "}}",
  };
}

}  // namespace weft

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const nlohmann::ordered_json user = {{"role", "user"}, {"content", "Gr\xc3\xbc\xc3\x9f dich"}};
  const nlohmann::ordered_json variables = {{"messages", {user, {{"role", "assistant"}, {"content", " b "}}}},
                                            {"bos_token", "<s>"}};
  const auto parsed = weft::JinjaTemplate::Parse({reinterpret_cast<const char*>(data), size});
  weft::accepted = parsed.ok() && parsed->Render(variables).ok();
  return 0;
}
