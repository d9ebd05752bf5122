// Bounds and errors of templates. What templates render is compared with transformers in tests/templates.
#include "weft/text/templates/jinja_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

std::string Result(const std::string& source, const nlohmann::ordered_json& variables = {{"x", 1}}) {
  const absl::StatusOr<JinjaTemplate> parsed = JinjaTemplate::Parse(source);
  if (!parsed.ok()) return std::string(parsed.status().message());
  const absl::StatusOr<std::string> text = parsed->Render(variables);
  return text.ok() ? *text : std::string(text.status().message());
}

std::string Repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(JinjaTemplate, ErrorsNameTheLineAndWhatIsNotSupported) {
  EXPECT_EQ(Result("a\n{% include 'x' %}"), "line 2: the tag 'include' is not supported here");
  EXPECT_EQ(Result("\n\n{{ x | batch(2) }}"), "line 3: the filter 'batch' is not supported");
  EXPECT_EQ(Result("{{ x is escaped }}"), "line 1: the test 'escaped' is not supported");
  EXPECT_EQ(Result("{{ 'a'.zfill(3) }}"), "line 1: the function or method '.zfill' is not supported");
  EXPECT_EQ(Result("{{ [1].append(2) }}"), "line 1: the function or method '.append' is not supported");
  EXPECT_EQ(Result("{{ 'a' | tojson(z=1) }}"), "line 1: tojson: the argument 'z' is not supported");
  EXPECT_EQ(Result("{{ 2 ** 3 }}"), "line 1: the operator ** is not supported");
  EXPECT_EQ(Result("a\n{% if x %}"), "line 2: the template ends, wanted elif or else or endif");
  EXPECT_EQ(Result("{{ raise_exception('roles must alternate') }}"), "line 1: the template says: roles must alternate");
  EXPECT_EQ(Result("{{ \xff }}"), "not UTF-8 at byte 3 (0xFF)");
  EXPECT_EQ(Result("{{ 9223372036854775807 + x }}"), "line 1: an int of more than 64 bits is not supported");
  EXPECT_EQ(Result("{{ namespace(a=1) }}"), "line 1: a namespace can't be printed");
}

TEST(JinjaTemplate, TimeMemoryAndRecursionAreBounded) {
  const std::string work = "the template does too much work, or writes too much text";
  const std::string loops = Repeat("{% for i in range(99999) %}", 3) + Repeat("{% endfor %}", 3);
  for (const std::string& source :
       {loops, std::string("{{ 'abc' * 99999999999 }}"), std::string("{{ ('a' * 99999).replace('a', 'b' * 9999) }}"),
        std::string("{% set n = namespace(t='abc') %}{% for i in range(99) %}{% set n.t = n.t ~ n.t %}{% endfor %}"),
        std::string("{% set n = namespace(t=[1]) %}{% for i in range(99) %}{% set n.t = n.t + n.t %}{% endfor %}"),
        std::string("{% for i in range(99999) %}{{ 'abc' * 9999 }}{% endfor %}"),
        std::string("{{ 'a' | indent(99999999) }}"),
        std::string("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}")}) {
    EXPECT_TRUE(absl::StrContains(Result(source), work)) << source.substr(0, 80) << "\n"
                                                         << Result(source).substr(0, 80);
  }
  EXPECT_EQ(Result("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "line 1: too many macros call each other");
  EXPECT_EQ(Result("{% set n = namespace(t=1) %}{% for i in range(99) %}{% set n.t = [n.t] %}{% endfor %}"),
            "line 1: lists are nested more than 64 levels deep");
  for (const char* const open : {"(", "[", "{1:", "not ", "-", "x if ", "x[", "f("}) {
    EXPECT_TRUE(absl::StrContains(Result("{{ " + Repeat(open, 100'000)), "line 1: ")) << open;
  }
  EXPECT_EQ(Result("{{ 1" + Repeat(" + 1", 2000) + " }}"), "line 1: a tag has more than 1000 operators");
  EXPECT_EQ(Result(Repeat("{% if x %}", 200)), "line 1: more than 100 levels are nested");
  EXPECT_EQ(Result(std::string(2'000'000, 'a')), "the template has 2000000 bytes, but at most 1000000 are supported");
  EXPECT_EQ(Result("{% set n = namespace() %}{% set n.n = n %}{{ n.n.n == n }}"), "True");
}

}  // namespace
}  // namespace weft
