// A TrainingTokenizer is the tokenizer of a training run on text. It is read from a resumed run, from the file that an
// option names, or from a default folder. If there is none of these, it is made from the data.
//
//   TrainingTokenizer tokenizer(8000, {"<pad>", "<s>", "</s>"});
//   WEFT_RETURN_IF_ERROR(tokenizer.Prepare(text));
//   tokenizer->Encode(...);
#ifndef WEFT_TRAIN_JOBS_TRAINING_TOKENIZER_H_
#define WEFT_TRAIN_JOBS_TRAINING_TOKENIZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/tokenizers/byte_level_bpe.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/train/run/run_directory.h"

namespace weft {

// Tokenizers that are made from the data: byte-level BPE, and those of a text's characters and of bytes.
inline constexpr char kBpe[] = "bpe", kCharacters[] = "characters", kBytes[] = "bytes";

class TrainingTokenizer {
 public:
  // The first three arguments apply to a learnt BPE. `vocabulary`: maximum number of tokens, unless an option gives
  // another. `special`: its special tokens. `set_format`: called with the learnt model, for example to set the input
  // formats. `kinds`: values of the option that name no file; the first is the default.
  TrainingTokenizer(int64_t vocabulary, std::vector<std::string> special,
                    std::function<void(BpeModel*)> set_format = nullptr, std::vector<std::string> kinds = {kBpe})
      : vocabulary_(vocabulary),
        special_(std::move(special)),
        set_format_(std::move(set_format)),
        kinds_(std::move(kinds)) {}

  Hyperparameters Table();  // rows tokenizer, vocabulary and special-tokens
  // Sets the folder to read from if no option names a tokenizer; "" for none.
  void set_default(const std::string& folder) { default_ = folder; }
  // Sets the folder of a resumed run. If the folder has a tokenizer, Prepare reads that one and no other.
  void set_run(const std::string& folder) { run_ = folder; }

  // Reads the tokenizer of the resumed run, if there is one. Otherwise reads the tokenizer that the option names, or
  // else that of the default folder. If neither is set, or the option names a kind, makes a tokenizer with Learn.
  absl::Status Prepare(absl::string_view text, absl::string_view learnt_from);
  absl::Status Prepare(absl::string_view text) { return Prepare(text, text); }
  // Makes a tokenizer of the kind that the option names, or else of the default kind: of the characters of `text`, or
  // BPE from `learnt_from`.
  absl::Status Learn(absl::string_view text, absl::string_view learnt_from);
  // Reads the tokenizer of a file or folder.
  absl::Status Read(const std::string& path);
  // Writes the tokenizer's files into the run's folder.
  absl::Status Write(RunDirectory* run) const;

  const std::string& path() const { return path_; }  // the option's value
  // After Prepare, returns the run or the default folder that the tokenizer was read from, or "". The settings of
  // generation there are about this tokenizer's tokens.
  const std::string& owner() const { return owner_; }
  bool is_resumed() const { return !run_.empty(); }  // whether set_run was called
  // Returns the tokenizer's files.
  absl::Span<const NamedContents> files() const { return files_; }
  const Tokenizer* operator->() const { return tokenizer_.get(); }
  const Tokenizer& operator*() const { return *tokenizer_; }

 private:
  std::string path_, default_, run_, owner_;
  int64_t vocabulary_;
  std::vector<std::string> special_;
  std::optional<bool> special_tokens_;  // Tokenizer::ReadSpecial
  std::function<void(BpeModel*)> set_format_;
  std::vector<std::string> kinds_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<NamedContents> files_;
};

// Returns a tokenizer for BERTs. If it is learnt, it has BERT's special tokens and input formats.
TrainingTokenizer BertTokenizer(int64_t vocabulary);
// Returns tokenizers for GPTs: of characters, of bytes, or BPE with the special token <|endoftext|>.
TrainingTokenizer GptTokenizer(int64_t vocabulary);

// Returns `id`, or InvalidArgument "the tokenizer has no NAME token" if it is not set.
absl::StatusOr<int32_t> NeededToken(const std::optional<int32_t>& id, absl::string_view name);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_TRAINING_TOKENIZER_H_
