// `weft tokenize` prints the token ids of texts, or the texts of token ids. With --out it writes token files.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/data/token_files.h"
#include "weft/text/data/tokenize_files.h"
#include "weft/text/learn/learn_tokenizer.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

struct TokenizeFlags {
  TokenizeOptions files;
  std::string tokenizer, document_end = "file", check;
  int64_t vocabulary = 8000;
  bool special = false, decode = false;
  std::vector<std::string> texts;
  GivenFlags given;
};

Hyperparameters Table(TokenizeFlags* flags) {
  return {
      {"tokenizer",
       "a file of a tokenizer, such as tokenizer.json, vocab.txt, *.bin or *.model, or its folder",
       &flags->tokenizer,
       {.type = "FILE_OR_FOLDER"}},
      {"special", "add the special tokens of the model's format; with --decode, print special tokens, too",
       &flags->special},
      SpecialTokensRow(&flags->files.special_tokens),
      {"decode", "print a line of text for each JSON array of ids", &flags->decode},
      {"out",
       "write the tokens of all texts to this new folder, as data for weft train gpt; without --tokenizer, byte-level "
       "BPE is learnt from the beginnings of the files",
       &flags->files.folder,
       {.type = "FOLDER"}},
      {"document-end",
       "with --out: where a document ends beside the end of its file: nowhere, at an empty line, or at the end token's "
       "text, such as <|endoftext|>",
       &flags->document_end,
       {.choices = {"file", "blank-line", "end-of-text"}, .needs = "out"}},
      {"vocabulary",
       "with --out: maximum number of tokens of a learnt tokenizer",
       &flags->vocabulary,
       {.low = 300, .high = 1e6, .needs = "out, no tokenizer"}},
      {"shard-tokens",
       "with --out: maximum number of tokens in a file",
       &flags->files.shard_tokens,
       {.low = 1, .high = 1e12, .needs = "out"}},
      {"check",
       "read the token files of this folder and compare them with their checksums",
       &flags->check,
       {.type = "FOLDER"}},
  };
}

absl::StatusOr<std::string> Encode(const Tokenizer& tokenizer, absl::string_view line, const TokenizeFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.Encode(line));
  return nlohmann::json(flags.special ? tokenizer.Wrap(ids).ids : ids).dump();
}

absl::StatusOr<std::string> Decode(const Tokenizer& tokenizer, absl::string_view line, const TokenizeFlags& flags) {
  const nlohmann::json json = ParseJson(line);
  if (!json.is_array()) return InvalidArgument("it is not a JSON array of ids");
  std::vector<int32_t> ids;
  for (const nlohmann::json& id : json) {
    const std::optional<int32_t> token = TokenId(id);
    if (!token) return InvalidArgument("entry ", ids.size(), " is not an id");
    ids.push_back(*token);
  }
  return flags.special ? tokenizer.DecodeWithSpecial(ids) : tokenizer.Decode(ids);
}

absl::Status WriteTokenFiles(TokenizeFlags flags) {
  if (flags.special || flags.decode) return InvalidArgument("--out: it excludes --special and --decode");
  std::replace(flags.texts.begin(), flags.texts.end(), std::string(kStandardInput), std::string());
  flags.files.document_end = flags.document_end == "file"         ? DocumentEnd::kFile
                             : flags.document_end == "blank-line" ? DocumentEnd::kBlankLine
                                                                  : DocumentEnd::kEndOfText;
  WEFT_ASSIGN_OR_RETURN(flags.files.tokenizer,
                        UsageError(flags.tokenizer.empty() ? LearnFromBeginnings(flags.texts, flags.vocabulary)
                                                           : ReadTokenizerFiles(flags.tokenizer)));
  WEFT_ASSIGN_OR_RETURN(const TokenizeResult result, UsageError(TokenizeFiles(flags.texts, flags.files)));
  const nlohmann::ordered_json json = {{"tokens", result.tokens},
                                       {"documents", result.documents},
                                       {"bytes", result.bytes},
                                       {"vocabulary", result.vocabulary}};
  std::printf("%s\n", json.dump().c_str());
  return absl::OkStatus();
}

absl::Status Check(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const TokenFiles files, UsageError(TokenFiles::Open(folder)));
  WEFT_RETURN_IF_ERROR(files.Verify());
  std::printf("%s: the checksums of all files are right\n", folder.c_str());
  return absl::OkStatus();
}

absl::Status Tokenize(TokenizeFlags flags) {
  if (!flags.check.empty()) {
    const bool alone = flags.given.size() == 1 && flags.texts.empty();
    return alone ? Check(flags.check) : InvalidArgument("--check excludes other flags and files");
  }
  if (!flags.files.folder.empty()) return WriteTokenFiles(flags);
  if (flags.tokenizer.empty()) return InvalidArgument("--tokenizer=FILE_OR_FOLDER is missing");
  WEFT_ASSIGN_OR_RETURN(const auto tokenizer, UsageError(LoadTokenizer(flags.tokenizer)));
  tokenizer->ReadSpecial(flags.files.special_tokens);
  return ForEachLine(flags.texts, [&](absl::string_view line) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const std::string text, (flags.decode ? Decode : Encode)(*tokenizer, line, flags));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fputc('\n', stdout);
    return absl::OkStatus();
  });
}

}  // namespace

Command TokenizeCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(weft, name,
                     {"Prints a JSON array of token ids for each line of text, or writes token files.",
                      "converts text to token ids, or writes token files",
                      {{"Prints the token ids of each line.", "weft tokenize --tokenizer=minilm sentences.txt"},
                       {"Writes token files, from which weft train gpt --data=tokens learns.",
                        "weft tokenize --out=tokens book.txt"}}},
                     std::make_shared<TokenizeFlags>(), Table, Tokenize, &TokenizeFlags::texts);
}

}  // namespace weft
