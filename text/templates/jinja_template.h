// A JinjaTemplate is a Jinja template as chat models ship it. It renders as it does in transformers: in an immutable
// sandbox, with trim_blocks and lstrip_blocks, the tags break, continue and generation, and the functions tojson,
// raise_exception and strftime_now.
//
//   WEFT_ASSIGN_OR_RETURN(const JinjaTemplate hello, JinjaTemplate::Parse("Hello {{ name | upper }}!"));
//   hello.Render({{"name", "you"}})                // "Hello YOU!"
//
// It has what published templates of models use. Other tags, filters, tests and methods are errors with their name and
// line; docs/formats.md lists what is supported. Rendering is bounded in time and memory (JinjaRun), so templates of
// strangers are safe.
#ifndef WEFT_TEXT_TEMPLATES_JINJA_TEMPLATE_H_
#define WEFT_TEXT_TEMPLATES_JINJA_TEMPLATE_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

class JinjaRun;

class JinjaTemplate {
 public:
  static constexpr size_t kMaxBytes = 1'000'000;  // of a template

  // Returns InvalidArgument, with the line, if `source` is not a template or needs what is not supported.
  static absl::StatusOr<JinjaTemplate> Parse(absl::string_view source);

  // Returns the text for `variables`, an object. Returns InvalidArgument, with the line, if the template raises an
  // error.
  absl::StatusOr<std::string> Render(const nlohmann::ordered_json& variables) const;

 private:
  std::function<void(JinjaRun&)> run_;
};

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_JINJA_TEMPLATE_H_
