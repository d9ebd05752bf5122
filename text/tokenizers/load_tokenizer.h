// LoadTokenizer loads a tokenizer from the files of a published model or of a training run. WriteTokenizerFolder writes
// one to a folder of its own.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("bert-base-uncased"));
//   WEFT_RETURN_IF_ERROR(CheckTokenizerFolder("tokenizer", /*overwrite=*/false));   // before long work
//   WEFT_RETURN_IF_ERROR(WriteTokenizerFolder("tokenizer", {"tokenizer.json", contents}));
// tokenizer_kind.h says how to add a kind of file.
#ifndef WEFT_TEXT_TOKENIZERS_LOAD_TOKENIZER_H_
#define WEFT_TEXT_TOKENIZERS_LOAD_TOKENIZER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

inline constexpr char kMarianTargets[] = "target.spm";  // beside source.spm: the SentencePiece model of targets

// Returns the usual names of all files from which tokenizers are read, including second files such as vocab.json, and
// those with chat templates, which belong to the tokenizer.
std::vector<std::string> TokenizerFileNames();

// Loads the tokenizer in `path`, a file or a folder. In a folder, takes the first kind of the table that has a file
// there. Returns NotFound if `path` doesn't exist, or if the folder has no such file. Returns InvalidArgument, with the
// file and the location in it, if the file can't be used. Prints Tokenizer::note on stderr, once for each file.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path);

// Returns the tokenizer of a bare list of tokens, which CTranslate2 keeps beside its models. `file`: one token a line,
// where lines end in "\n" or "\r\n", or a list of texts in JSON. If all tokens except <blank>, <s>, </s> and the
// unknown token are single characters, each character of a text is a token, and white space is skipped. Otherwise a
// text must consist of tokens already, separated by white space. A token that the list lacks, or that is one of these
// four, becomes the unknown token, which is appended if the list lacks it. Returns InvalidArgument if `file` is not
// UTF-8, or if a token occurs twice.
absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenList(absl::string_view file, const std::string& unknown = "<unk>");

// A file of a tokenizer. If ReadContents(file) is written to another folder as `name`, LoadTokenizer recognises it.
struct TokenizerFile {
  std::string path, name;
  // The contents, if the file at `path` is a model that holds a tokenizer, too.
  std::optional<std::string> contents = std::nullopt;
};
absl::StatusOr<std::string> ReadContents(const TokenizerFile& file);

// Returns the files that LoadTokenizer(path) reads, and the chat template beside them.
absl::StatusOr<std::vector<TokenizerFile>> TokenizerFiles(const std::string& path);

// A file by its name, without a folder.
struct NamedContents {
  std::string name, contents;
};

inline constexpr char kChatTemplateFile[] = "chat_template.jinja";
// Returns the paths in `folder` of the files that are chat templates (text/templates/chat_template.h).
std::vector<std::string> ChatTemplateFiles(const std::string& folder);

// Reads the files that LoadTokenizer(path) reads. Written to another folder, they are the same tokenizer.
absl::StatusOr<std::vector<NamedContents>> ReadTokenizerFiles(const std::string& path);

// Returns AlreadyExists if WriteTokenizerFolder must not write `folder`: it is a file, or has files. With `overwrite`,
// it may have the files of a tokenizer, but no others. Also returns the error of a place where nothing can be written.
absl::Status CheckTokenizerFolder(const std::string& folder, bool overwrite);
// Writes `file` to `folder`, which it makes if necessary. Removes the files of other tokenizers there, because
// LoadTokenizer takes the first kind of file that it finds.
absl::Status WriteTokenizerFolder(const std::string& folder, const NamedContents& file);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_LOAD_TOKENIZER_H_
