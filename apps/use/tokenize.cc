// `weft tokenize` prints the token ids of texts, or the texts of token ids.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/text/load_tokenizer.h"

namespace weft {
namespace {

struct TokenizeFlags {
  std::string tokenizer;
  bool special = false, decode = false;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(TokenizeFlags* flags) {
  return {
      {"tokenizer", "a file of a tokenizer, such as tokenizer.json, vocab.txt, *.bin or *.model, or its folder",
       &flags->tokenizer},
      {"special",
       "add the special tokens of the model's format, and read those that the text spells out as special tokens",
       &flags->special},
      {"decode", "decode: print a line of text for each JSON array of ids", &flags->decode},
  };
}

absl::StatusOr<std::string> Encode(const Tokenizer& tokenizer, absl::string_view line, bool special) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                        special ? tokenizer.EncodeWithSpecial(line) : tokenizer.Encode(line));
  return nlohmann::json(special ? tokenizer.Wrap(ids).ids : ids).dump();
}

absl::StatusOr<std::string> Decode(const Tokenizer& tokenizer, absl::string_view line, bool special) {
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return InvalidArgument("it is not a JSON array of ids");
  std::vector<int32_t> ids;
  for (const nlohmann::json& id : json) {
    if (!id.is_number_integer() || id.get<int64_t>() != id.get<int32_t>()) {
      return InvalidArgument("entry " + std::to_string(ids.size()) + " is not an id");
    }
    ids.push_back(id.get<int32_t>());
  }
  return special ? tokenizer.DecodeWithSpecial(ids) : tokenizer.Decode(ids);
}

absl::Status Tokenize(TokenizeFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.tokenizer.empty()) return InvalidArgument("--tokenizer=FILE_OR_FOLDER is missing");
  WEFT_ASSIGN_OR_RETURN(const auto tokenizer, UsageError(LoadTokenizer(flags.tokenizer)));
  return ForEachLine(flags.files, [&](absl::string_view line) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const std::string text, (flags.decode ? Decode : Encode)(*tokenizer, line, flags.special));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fputc('\n', stdout);
    return absl::OkStatus();
  });
}

}  // namespace

Command TokenizeCommand(CLI::App* weft) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* app = AddCommand(weft, "tokenize", "Prints a JSON array of token ids for each line of text.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft tokenize", app, [flags] { return Tokenize(*flags); }};
}

}  // namespace weft
