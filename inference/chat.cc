#include "weft/inference/chat.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr char kLine[] = "{}";  // stands for the person's line in ChatOptions::turn

}  // namespace

absl::StatusOr<std::unique_ptr<Chat>> Chat::Open(const std::string& path, const ChatOptions& options) {
  const size_t at = options.turn.find(kLine);
  if (at == 0 || at == std::string::npos || at != options.turn.rfind(kLine)) {
    return InvalidArgument("turn: '", options.turn, "' must have one {}, and a text before it");
  }
  auto chat = std::unique_ptr<Chat>(new Chat(options));
  TextGeneratorOptions generator = options.generator;
  generator.stop.push_back(options.turn.substr(0, at));
  generator.generate.truncate = true;
  generator.batch = 1;
  WEFT_ASSIGN_OR_RETURN(chat->generator_, TextGenerator::Open(path, generator));
  return chat;
}

absl::Status Chat::Answer(absl::string_view line, Sink sink) {
  const std::string turn = absl::StrReplaceAll(options_.turn, {{kLine, line}});
  // A conversation does not begin with the break between two turns.
  std::string text = text_.empty() && options_.beginning.empty() ? std::string(absl::StripPrefix(turn, "\n"))
                     : text_.empty()                             ? absl::StrCat(options_.beginning, turn)
                                                                 : absl::StrCat(text_, turn);
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, generator_->Encode(text));
  text_ = std::move(text);
  return generator_->Continue({tokens}, [&](size_t, const std::string& piece, const GeneratedToken*) {
    text_ += piece;
    return sink(piece);
  });
}

}  // namespace weft
