// A file is read in parts. Text that no later part can change is encoded: whole documents, and long documents up to a
// place where a cut does not change the tokens.
#include "weft/text/data/tokenize_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/data/gzip.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 18;  // bytes of a file
constexpr size_t kMinChunk = 16;                 // bytes: several characters
constexpr size_t kReach = 128;                   // bytes: longer than the added tokens of published tokenizers

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }
// Returns where to cut a text: at most `limit`, which is at least kMinChunk. Tokenizers split a text into words before
// they look for tokens. A line end between two characters that are not white space is a word, and a word includes at
// most the one space before it. So cuts after such a line end and before such a space do not change the tokens, except
// at an added token. A text without either is cut between two characters.
size_t CutBefore(absl::string_view text, size_t limit, const Tokenizer& tokenizer) {
  const auto word = [&](size_t i) { return !IsSpace(text[i]); };
  const auto added = [&](size_t i) { return tokenizer.TouchesAddedToken(text, i); };
  for (size_t i = limit; i > 1; --i) {
    if (i < text.size() && text[i - 1] == '\n' && word(i - 2) && word(i) && !added(i)) return i;
  }
  for (size_t i = limit; i > 1; --i) {
    if (i + 1 < text.size() && text[i] == ' ' && word(i - 1) && word(i + 1) && !added(i)) return i;
  }
  size_t cut = limit;
  while (cut > 1 && cut < text.size() && (IsContinuation(text[cut]) || added(cut))) --cut;
  return cut;
}

struct Range {
  size_t begin, end;
};

// Finds the separators of documents in a text.
class Separator {
 public:
  Separator(DocumentEnd kind, std::string end_text) : kind_(kind), end_text_(std::move(end_text)) {}

  // Returns the first separator at or after `from`. It begins where the document's text ends.
  std::optional<Range> Find(absl::string_view text, size_t from) const {
    if (kind_ == DocumentEnd::kFile) return std::nullopt;
    if (kind_ == DocumentEnd::kEndOfText) {
      const size_t at = text.find(end_text_, from);
      if (at == text.npos) return std::nullopt;
      return Range{at, at + end_text_.size()};
    }
    for (size_t at = from; (at = text.find('\n', at)) != text.npos; ++at) {
      size_t next = at + 1;
      if (next < text.size() && text[next] == '\r') ++next;
      if (next < text.size() && text[next] == '\n') return Range{at + 1, next + 1};
    }
    return std::nullopt;
  }
  // Returns the number of line ends at the beginning of a document's text, which belong to the separator before it.
  size_t Leading(absl::string_view text) const {
    if (kind_ == DocumentEnd::kFile) return 0;
    return std::min(text.find_first_not_of("\r\n"), text.size());
  }
  // Returns the maximum number of bytes of a separator or an added token that is not yet complete.
  size_t Reach() const { return std::max<size_t>(end_text_.size(), kReach); }

 private:
  DocumentEnd kind_;
  std::string end_text_;
};

// Adds text to the present document. `file` and `position` name the place of the text in errors.
absl::Status AddText(absl::string_view text, const std::string& file, int64_t position, TokenFileWriter* writer) {
  if (text.empty()) return absl::OkStatus();
  const absl::StatusOr<std::vector<int32_t>> ids = writer->tokenizer().Encode(text);
  if (ids.ok()) return writer->Add(*ids);
  return Annotate(ids.status(), position == 0 ? file : absl::StrCat(file, ", counted from byte ", position));
}

// Ends the present document, unless it is empty, with the tokenizer's end token, if there is one.
absl::Status EndDocument(TokenFileWriter* writer) {
  const std::optional<int32_t> end = writer->tokenizer().special_tokens().end;
  if (writer->in_document() && end.has_value()) WEFT_RETURN_IF_ERROR(writer->Add({*end}));
  writer->EndDocument();
  return absl::OkStatus();
}

// Writes the documents of one file. Returns the number of bytes in it.
absl::StatusOr<int64_t> TokenizeFile(const std::string& path, const Separator& separator, size_t chunk,
                                     TokenFileWriter* writer) {
  WEFT_ASSIGN_OR_RETURN(FileStream stream, FileStream::Open(path));
  std::string text;      // read, but not yet encoded
  int64_t position = 0;  // in the file, of the beginning of `text`
  bool begins = true;    // whether a document begins at the beginning of `text`
  const auto drop = [&](size_t bytes) {
    text.erase(0, bytes);
    position += static_cast<int64_t>(bytes);
  };
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const size_t read, stream.Append(kReadAtOnce, &text));
    size_t begin = 0;
    while (true) {
      if (begins) begin += separator.Leading(absl::string_view(text).substr(begin));
      begins = begins && begin == text.size();
      const std::optional<Range> end = separator.Find(text, begin);
      if (!end.has_value()) break;
      WEFT_RETURN_IF_ERROR(AddText(absl::string_view(text).substr(begin, end->begin - begin), stream.name(),
                                   position + static_cast<int64_t>(begin), writer));
      WEFT_RETURN_IF_ERROR(EndDocument(writer));
      begin = end->end;
      begins = true;
    }
    drop(begin);
    while (read > 0 && text.size() > chunk + separator.Reach()) {
      const size_t cut = CutBefore(text, chunk, writer->tokenizer());
      WEFT_RETURN_IF_ERROR(AddText(absl::string_view(text).substr(0, cut), stream.name(), position, writer));
      drop(cut);
    }
    if (read > 0) continue;
    WEFT_RETURN_IF_ERROR(AddText(text, stream.name(), position, writer));
    WEFT_RETURN_IF_ERROR(EndDocument(writer));
    return position + static_cast<int64_t>(text.size());
  }
}

// Returns the text of the tokenizer's end token.
absl::StatusOr<std::string> EndText(const Tokenizer& tokenizer) {
  for (const AddedToken& token : tokenizer.special_token_list()) {
    if (token.id == tokenizer.special_tokens().end) return token.text;
  }
  return InvalidArgument("document-end: the tokenizer has no end token, whose text would end documents");
}

}  // namespace

absl::StatusOr<TokenizeResult> TokenizeFiles(const std::vector<std::string>& paths, const TokenizeOptions& options) {
  WEFT_ASSIGN_OR_RETURN(TokenFileWriter writer,
                        TokenFileWriter::Create(options.folder, options.tokenizer, options.shard_tokens));
  std::string end_text;
  if (options.document_end == DocumentEnd::kEndOfText) {
    WEFT_ASSIGN_OR_RETURN(end_text, EndText(writer.tokenizer()));
  }
  const Separator separator(options.document_end, end_text);
  writer.tokenizer().ReadSpecial(options.special_tokens);
  TokenizeResult result = {.vocabulary = writer.tokenizer().vocabulary_size()};
  for (const std::string& path : paths.empty() ? std::vector<std::string>{""} : paths) {
    WEFT_ASSIGN_OR_RETURN(const int64_t bytes,
                          TokenizeFile(path, separator, std::max(options.chunk, kMinChunk), &writer));
    result.bytes += bytes;
  }
  WEFT_RETURN_IF_ERROR(writer.Finish());
  result.tokens = writer.tokens();
  result.documents = writer.documents();
  return result;
}

}  // namespace weft
