// tokenizer.bin is the tokenizer of llama2.c: pieces with scores. The characters of a text, with a space before it, are
// merged into pieces, highest score first.
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/text/tokenizers/pipeline_steps.h"

namespace weft {
namespace {

struct ScoredPiece {
  std::string text;  // " the"; "<0x0A>" stands for a byte; "<s>", "</s>" and "<unk>" are special
  float score;
};

// Drops the space at the beginning of the first token, and of a token after the begin token.
void Join(std::vector<std::string>* tokens) {
  bool begins = true;
  for (std::string& token : *tokens) {
    const int byte = ByteOf(token);
    const bool first = std::exchange(begins, token == "<s>");
    if (byte >= 0) {
      token.assign(1, static_cast<char>(byte));
    } else if (first && absl::StartsWith(token, " ")) {
      token.erase(0, 1);
    }
  }
}

// Reads the contents of a tokenizer.bin: the length of the longest piece in bytes (i32), then for each piece its score
// (f32), its length in bytes (i32) and its text. Returns InvalidArgument, with the piece, if the file is truncated or
// malformed. It is not inlined, because GCC 12 then warns of bytes of `file` that it takes for uninitialized.
[[gnu::noinline]] absl::StatusOr<std::vector<ScoredPiece>> ReadPieces(absl::string_view file) {
  std::vector<ScoredPiece> pieces;
  absl::string_view rest = file;
  const auto read = [&rest](auto* value) {
    if (rest.size() < sizeof *value) return false;
    std::memcpy(value, rest.data(), sizeof *value);
    rest.remove_prefix(sizeof *value);
    return true;
  };
  int32_t longest = 0;
  if (!read(&longest)) return InvalidArgument("the file has only ", file.size(), " bytes");
  while (!rest.empty()) {
    const std::string context = absl::StrCat("piece ", pieces.size(), ", at byte ", file.size() - rest.size(), ": ");
    float score = 0;
    int32_t bytes = 0;
    if (!read(&score) || !read(&bytes)) return InvalidArgument(context, "the file ends there");
    if (bytes < 1 || bytes > longest) {
      return InvalidArgument(context, "it has ", bytes, " bytes, but the file says that a piece has 1 to ", longest);
    }
    if (rest.size() < static_cast<size_t>(bytes)) {
      return InvalidArgument(context, "the file ends within its ", bytes, " bytes");
    }
    absl::string_view text = rest.substr(0, static_cast<size_t>(bytes));
    for (const absl::string_view special : {"<s>", "</s>"}) {  // the file puts line breaks around these two
      if (text == absl::StrCat("\n", special, "\n")) text = special;
    }
    pieces.push_back({std::string(text), score});
    rest.remove_prefix(static_cast<size_t>(bytes));
  }
  if (pieces.empty()) return InvalidArgument("the file has no pieces");
  return pieces;
}

// Returns InvalidArgument if the file is malformed, a piece occurs twice or a score is NaN.
Loaded Create(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<ScoredPiece> pieces, ReadPieces(contents));
  BpeModel model = {.characters = true, .byte_fallback = true, .keeps_unknown = true};
  for (const ScoredPiece& piece : pieces) {
    if (std::isnan(piece.score)) return InvalidArgument("the score of ", Quoted(piece.text), " is not a number");
    WEFT_RETURN_IF_ERROR(model.vocabulary.Add(piece.text));
    model.scores.push_back(piece.score);
  }
  model.special = UsualSpecialTokens(model.vocabulary);
  model.unknown = model.vocabulary.Find("<unk>");
  model.single = Surrounded(model.vocabulary.Find("<s>"), {WrapItem::kFirst}, {});
  model.pipeline = {.normalizers = {PrependText(" ")}, .decoders = std::vector<Decoder>{Join}};
  return Bpe::Create(std::move(model));
}

}  // namespace

constexpr TokenizerKind kLlama2cTokenizer = {
    .file = "tokenizer.bin",
    .extension = ".bin",
    .of_transformers = false,
    .load = FromOneFile<Create>,
};

}  // namespace weft
