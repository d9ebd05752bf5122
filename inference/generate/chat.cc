#include "weft/inference/generate/chat.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr char kLine[] = "{}";  // stands for the person's line in ChatOptions::turn

}  // namespace

absl::StatusOr<std::unique_ptr<Chat>> Chat::Create(OpenedGpt gpt, const ChatOptions& options) {
  const size_t at = options.turn.find(kLine);
  if (at == 0 || at == std::string::npos || at != options.turn.rfind(kLine)) {
    return InvalidArgument("turn: '", options.turn, "' must have one {}, and a text before it");
  }
  auto chat = std::unique_ptr<Chat>(new Chat(options));
  TextGeneratorOptions generator = options.generator;
  generator.stop.push_back(options.turn.substr(0, at));
  generator.generate.truncate = true;
  generator.runtime.batch = 1;
  WEFT_ASSIGN_OR_RETURN(chat->generator_, TextGenerator::Create(std::move(gpt), generator));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> beginning,
                        Annotate(chat->generator_->Encode(options.beginning), "beginning"));
  const int64_t half = chat->generator_->context() / 2, tokens = static_cast<int64_t>(beginning.size());
  if (tokens > half) {
    return InvalidArgument("beginning: it has ", tokens, " tokens, but may fill only half of the context, ", half);
  }
  return chat;
}

std::string Chat::TextFrom(size_t first) const {
  const std::string turns = absl::StrJoin(absl::MakeConstSpan(turns_).subspan(first), "");
  if (!options_.beginning.empty()) return turns_.empty() ? "" : absl::StrCat(options_.beginning, turns);
  return std::string(absl::StripPrefix(turns, "\n"));  // a conversation does not begin with the break between two turns
}

void Chat::Clear() {
  turns_.clear();
  forgotten_ = 0;
}

absl::StatusOr<std::vector<int32_t>> Chat::AddTurn(absl::string_view line) {
  WEFT_RETURN_IF_ERROR(generator_->Encode(line).status());  // an error tells the place in the line, not in the text
  turns_.push_back(absl::StrReplaceAll(options_.turn, {{kLine, line}}));
  absl::StatusOr<std::vector<int32_t>> tokens = generator_->Encode(TextFrom(forgotten_));
  if (!tokens.ok()) {
    turns_.pop_back();
    return tokens;
  }
  const int64_t context = generator_->context(), room = std::min(options_.generator.generate.length, context / 4);
  if (static_cast<int64_t>(tokens->size()) <= context - room) return tokens;
  while (static_cast<int64_t>(tokens->size()) > context / 2 && forgotten_ + 1 < turns_.size()) {
    // The text is a part of one that was encoded, so it can be encoded, too.
    WEFT_ASSIGN_OR_RETURN(*tokens, generator_->Encode(TextFrom(++forgotten_)));
  }
  return tokens;
}

absl::Status Chat::Answer(absl::string_view line, TokenSink sink) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, AddTurn(line));
  return generator_->Continue({tokens}, [&](const GeneratedToken& generated) {
    turns_.back() += generated.text;
    return sink(generated);
  });
}

}  // namespace weft
