// Each kind of decoder is a row of kKinds, with the function that reads its settings.
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Tokens = std::vector<std::string>;

absl::StatusOr<Decoder> ReadBpe(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const std::string suffix, Get<std::string>(object, "suffix", "</w>"));
  if (suffix.empty()) return InvalidArgument("suffix: an empty one is not supported");
  return Decoder([suffix](Tokens* tokens) {
    for (std::string& token : *tokens) absl::StrReplaceAll({{suffix, &token == &tokens->back() ? "" : " "}}, &token);
  });
}

// Replaces tokens such as "<0x0A>" that follow each other by the character of the bytes, or by as many U+FFFD if the
// bytes are not UTF-8.
absl::StatusOr<Decoder> ReadByteFallback(const Json& /*object*/) {
  return Decoder([](Tokens* tokens) {
    Tokens decoded;
    std::string bytes;
    const auto flush = [&] {
      if (CheckUtf8(bytes).ok()) {
        if (!bytes.empty()) decoded.push_back(bytes);
      } else {
        decoded.insert(decoded.end(), bytes.size(), "\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& token : *tokens) {
      const int byte = ByteOf(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      decoded.push_back(std::move(token));
    }
    flush();
    *tokens = std::move(decoded);
  });
}

absl::StatusOr<Decoder> ReadByteLevel(const Json& /*object*/) {
  return Decoder([](Tokens* tokens) {
    std::string text;
    for (const std::string& token : *tokens) text += FromByteAlphabet(token).value_or(token);
    *tokens = {ReplaceInvalidUtf8(text)};
  });
}

absl::StatusOr<Decoder> ReadFuse(const Json& /*object*/) { return JoinAll(); }

// Replaces the mark by a space; in the first token, drops it unless the scheme is kNever.
absl::StatusOr<Decoder> ReadMetaspace(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const std::string mark, ReadMark(object));
  WEFT_ASSIGN_OR_RETURN(const PrependScheme scheme, ReadPrependScheme(object));
  return Decoder([mark, scheme](Tokens* tokens) {
    for (std::string& token : *tokens) {
      const bool first = &token == &tokens->front() && scheme != PrependScheme::kNever;
      absl::StrReplaceAll({{mark, first ? "" : " "}}, &token);
    }
  });
}

absl::StatusOr<Decoder> ReadReplace(const Json& object) {
  const Json& pattern = Member(object, "pattern");
  WEFT_ASSIGN_OR_RETURN(const std::string old, Get<std::string>(pattern, "String", ""));
  WEFT_ASSIGN_OR_RETURN(const std::string content, Get<std::string>(object, "content", ""));
  if (old.empty()) return InvalidArgument("pattern: ", pattern.dump(), " is not supported");
  return Decoder([old, content](Tokens* tokens) {
    for (std::string& token : *tokens) absl::StrReplaceAll({{old, content}}, &token);
  });
}

absl::StatusOr<Decoder> ReadStrip(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const std::string content, Get<std::string>(object, "content", " "));
  WEFT_ASSIGN_OR_RETURN(const int64_t start, Get<int64_t>(object, "start", 0));
  WEFT_ASSIGN_OR_RETURN(const int64_t stop, Get<int64_t>(object, "stop", 0));
  if (content.empty()) return InvalidArgument("content: an empty one is not supported");
  return Decoder([content, start, stop](Tokens* tokens) {
    for (std::string& token : *tokens) {
      absl::string_view rest = token;
      for (int64_t i = 0; i < start && absl::ConsumePrefix(&rest, content); ++i) continue;
      for (int64_t i = 0; i < stop && absl::ConsumeSuffix(&rest, content); ++i) continue;
      token = std::string(rest);
    }
  });
}

absl::StatusOr<Decoder> ReadWordPiece(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const std::string prefix, Get<std::string>(object, "prefix", "##"));
  WEFT_ASSIGN_OR_RETURN(const bool clean_up, Get(object, "cleanup", true));
  return JoinWordPieces(prefix, clean_up);
}

constexpr StepKind<Decoder> kKinds[] = {
    {"BPEDecoder", ReadBpe}, {"ByteFallback", ReadByteFallback}, {"ByteLevel", ReadByteLevel},
    {"Fuse", ReadFuse},      {"Metaspace", ReadMetaspace},       {"Replace", ReadReplace},
    {"Strip", ReadStrip},    {"WordPiece", ReadWordPiece},
};

}  // namespace

Decoder JoinWordPieces(std::string prefix, bool clean_up) {
  return [prefix = std::move(prefix), clean_up](Tokens* tokens) {
    bool first = true;
    for (std::string& token : *tokens) {
      absl::string_view text = token;
      const bool joined = std::exchange(first, false) || absl::ConsumePrefix(&text, prefix);
      std::string piece = absl::StrCat(joined ? "" : " ", text);
      token = clean_up ? absl::StrReplaceAll(CleanUpSpaces(std::move(piece)), {{" do not", " don't"}}) : piece;
    }
  };
}

Decoder JoinAll() {
  return [](Tokens* tokens) { *tokens = {absl::StrJoin(*tokens, "")}; };
}

absl::StatusOr<Decoder> ReadDecoder(const Json& object) { return ReadStep(kKinds, object); }

}  // namespace weft
