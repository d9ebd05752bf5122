// TokenizerKind describes one kind of file that holds a tokenizer. Each kind is a constant in a file of this folder,
// and a row of the table in load_tokenizer.cc.
//
//   Loaded Create(absl::string_view contents);  // makes the tokenizer
//   constexpr TokenizerKind kMine = {.file = "mine.txt", .extension = ".mine", .load = FromOneFile<Create>};
#ifndef WEFT_TEXT_TOKENIZERS_TOKENIZER_KIND_H_
#define WEFT_TEXT_TOKENIZERS_TOKENIZER_KIND_H_

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

using Loaded = absl::StatusOr<std::unique_ptr<Tokenizer>>;

// A file is recognised by its name, or else by its extension.
struct TokenizerKind {
  const char* file;                  // the file's usual name: "tokenizer.model"
  const char* other_name = nullptr;  // a second usual name: "spiece.model"
  const char* extension = nullptr;   // ".model" if files of any other name with this extension are of this kind too
  const char* companion = nullptr;   // a second file that is read from the same folder
                                     // which is required: either file stands for both
  bool has_format = false;           // whether the file says which special tokens surround a text
  bool of_transformers = true;       // whether tokenizer_config.json in the same folder is about this file
  // Loads the tokenizer from `file`; `companion` is empty if there is none. `config`: tokenizer_config.json beside it,
  // or null. Errors name the file that is at fault; those about `config` name that.
  Loaded (*load)(const std::string& file, const std::string& companion, const nlohmann::json& config);
  // Returns files that are the same tokenizer in a folder, without the model that `file` holds, too. Null: `file` has
  // nothing but the tokenizer. A folder has such a file under any name with `extension`.
  absl::StatusOr<std::vector<NamedContents>> (*files)(const std::string& file) = nullptr;
};

// Returns the path of the tokenizer_config.json beside `file`, for errors about it.
inline std::string ConfigBeside(const std::string& file) {
  return std::filesystem::path(file).replace_filename("tokenizer_config.json").string();
}

// Reads `file`, and calls `create` with its contents to make the tokenizer.
template <auto create>
Loaded FromOneFile(const std::string& file, const std::string& /*companion*/, const nlohmann::json& /*config*/) {
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file));
  return Annotate(create(contents), file);
}

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_TOKENIZER_KIND_H_
