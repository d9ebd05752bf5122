// `weft import` and `weft export`: a model from one layout to another.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/open_published.h"
#include "weft/formats/write_weights.h"
#include "weft/text/load_tokenizer.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kHuggingFace[] = "huggingface", kNanoGpt[] = "nanogpt", kLlama2c[] = "llama2.c",
               kCTranslate2[] = "ctranslate2";

struct ConvertFlags {
  std::string model, out, tokenizer, layout = kHuggingFace;
  int64_t file_version = 0;
  bool overwrite = false;
  GivenFlags given;
};

Hyperparameters ImportTable(ConvertFlags* flags) {
  return {
      {"model", "a folder of Hugging Face, nanoGPT or CTranslate2, a file of llama2.c, or a run's folder",
       &flags->model},
      {"out", "the folder to write: config.json, model.safetensors and the tokenizer's files", &flags->out},
      {"tokenizer", "the tokenizer's file or folder; without it, what lies beside the model", &flags->tokenizer},
      {"overwrite", "write into a folder that has files, in place of those of a model", &flags->overwrite},
  };
}

Hyperparameters ExportTable(ConvertFlags* flags) {
  Hyperparameters table = ImportTable(flags);
  table[1].help = "the folder to write: the model and the tokenizer's files";
  table.push_back({"layout",
                   "how to write the model",
                   &flags->layout,
                   {.choices = {kHuggingFace, kNanoGpt, kLlama2c, kCTranslate2}}});
  table.push_back({"file-version", "of llama2.c's model.bin", &flags->file_version, {.low = 0, .high = 1}});
  return table;
}

// What belongs to a model besides its configuration and weights, and is copied as it is.
constexpr const char* kCompanions[] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt", "encoder.json", "vocab.bpe", "vocab.txt", "tokenizer.bin", "tokenizer.model", "spiece.model",
    "source_vocabulary.txt", "target_vocabulary.txt", "shared_vocabulary.txt", "generation_config.json",
    // Of sentence-transformers.
    "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json"};

// The files of the layouts themselves.
constexpr const char* kModelFiles[] = {"config.json", "model.safetensors", "model.bin"};

// The folder that a path, of a file or a folder, means.
fs::path FolderOf(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const fs::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

absl::StatusOr<std::vector<TokenizerFile>> CompanionsOf(const ConvertFlags& flags) {
  if (!flags.tokenizer.empty()) return TokenizerFiles(flags.tokenizer);
  std::error_code error;
  std::vector<TokenizerFile> files;
  const bool folder = fs::is_directory(flags.model, error);
  const fs::path beside = FolderOf(flags.model);
  for (const char* name : kCompanions) {
    if (!folder && absl::string_view(name) != "tokenizer.bin") continue;
    if (fs::is_regular_file(beside / name, error)) files.push_back({(beside / name).string(), name});
  }
  return files;
}

// Whether the folder may be written, and has nothing of what is read; nothing is changed.
absl::Status CheckOutput(const ConvertFlags& flags, const std::vector<TokenizerFile>& files) {
  std::error_code error;
  if (!fs::exists(flags.out, error)) return absl::OkStatus();
  if (!fs::is_directory(flags.out, error)) {
    return absl::AlreadyExistsError(absl::StrCat(flags.out, " is there, and is no folder"));
  }
  // As it is named, and where links lead.
  const auto is_out = [&](const fs::path& path) {
    return fs::equivalent(flags.out, FolderOf(path), error) ||
           fs::equivalent(flags.out, FolderOf(fs::canonical(path, error)), error);
  };
  if (is_out(flags.model)) {
    return absl::AlreadyExistsError(absl::StrCat("--out is the model's own folder, ", flags.out));
  }
  for (const TokenizerFile& file : files) {
    if (!is_out(file.path)) continue;
    return absl::AlreadyExistsError(absl::StrCat("--out, ", flags.out, ", is the folder of ", file.path));
  }
  if (const auto config = ReadJsonFile(flags.out + "/config.json"); config.ok() && config->contains("command")) {
    return absl::AlreadyExistsError(
        absl::StrCat("--out: ", flags.out, " is the run of a training, which no model is written over"));
  }
  if (flags.overwrite || fs::is_empty(flags.out, error)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(flags.out, " is there, and not empty: --overwrite replaces the files of a model there"));
}

struct Writer {
  const ConvertFlags& flags;

  absl::Status NoLayout(const char* model, const char* layouts) const {
    return absl::InvalidArgumentError(absl::StrCat(model, " can't be written as ", flags.layout, ", but as ", layouts));
  }
  absl::Status operator()(const PublishedGpt& gpt) const {
    if (flags.layout == kHuggingFace) return WriteHuggingFace(flags.out, gpt);
    if (flags.layout == kNanoGpt) return WriteNanoGpt(flags.out, gpt);
    if (flags.layout != kLlama2c) return NoLayout("a GPT", "huggingface, nanogpt or llama2.c");
    return WriteLlama2c(flags.out + "/model.bin", gpt, static_cast<int>(flags.file_version));
  }
  absl::Status operator()(const PublishedBert& bert) const {
    if (flags.layout == kHuggingFace) return WriteHuggingFace(flags.out, bert);
    return NoLayout("a BERT", kHuggingFace);
  }
  absl::Status operator()(const PublishedTransformer& model) const {
    if (flags.layout == kHuggingFace) return WriteHuggingFace(flags.out, model);
    if (flags.layout == kCTranslate2) return WriteCTranslate2(flags.out, model);
    return NoLayout("an encoder-decoder", "huggingface or ctranslate2");
  }
};

absl::Status CheckTokenizer(const std::vector<TokenizerFile>& files, const PublishedModel& model) {
  const PublishedGpt* const gpt = std::get_if<PublishedGpt>(&model);
  const PublishedBert* const bert = std::get_if<PublishedBert>(&model);
  if (gpt == nullptr && bert == nullptr) return absl::OkStatus();
  const int64_t vocabulary = gpt != nullptr ? gpt->config.vocabulary : bert->config.vocabulary;
  for (const TokenizerFile& file : files) {
    // Of a kind that is not known here, it is copied all the same.
    const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(file.path);
    if (!tokenizer.ok()) continue;
    WEFT_RETURN_IF_ERROR(CheckVocabulary(file.path, (*tokenizer)->vocabulary_size(), vocabulary));
  }
  return absl::OkStatus();
}

absl::Status WriteFiles(const ConvertFlags& flags, const PublishedModel& model,
                        const std::vector<TokenizerFile>& files) {
  WEFT_RETURN_IF_ERROR(std::visit(Writer{flags}, model));
  for (const auto& [path, name] : files) {
    WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
    const fs::path to = fs::path(flags.out) / name;
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    if (error) return SystemStatus("create", to.parent_path().string(), error.value());
    WEFT_RETURN_IF_ERROR(WriteFile(to.string(), {contents}));
  }
  return absl::OkStatus();
}

// Moves all files of one folder into another; none if a folder is in the place of one.
absl::Status MoveFiles(const fs::path& from, const fs::path& to) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from, error)) {
    const fs::path file = entry.path().lexically_relative(from), target = to / file;
    if (entry.is_directory(error)) continue;
    files.push_back(file);
    if (fs::is_directory(target, error)) return SystemStatus("write", target.string(), EISDIR);
    fs::create_directories(target.parent_path(), error);
    if (error) return SystemStatus("create", target.parent_path().string(), error.value());
  }
  for (const fs::path& file : files) {
    fs::rename(from / file, to / file, error);
    if (error) return SystemStatus("write", (to / file).string(), error.value());
  }
  return SyncFolder(to.string());
}

// Writes all or, but for a failure between two files' renaming, nothing.
absl::Status Write(const ConvertFlags& flags, const PublishedModel& model, const std::vector<TokenizerFile>& files) {
  ConvertFlags temporary = flags;
  temporary.out = absl::StrCat(flags.out, "/", getpid(), kTemporarySuffix);
  std::error_code error;
  fs::create_directories(temporary.out, error);
  if (error) return SystemStatus("create", temporary.out, error.value());
  absl::Status status = WriteFiles(temporary, model, files);
  if (status.ok()) status = MoveFiles(temporary.out, flags.out);
  fs::remove_all(temporary.out, error);
  return status;
}

// Removes what another model has left under names that this one has no file of: it would be taken for this one's.
absl::Status RemoveStale(const ConvertFlags& flags, const std::vector<TokenizerFile>& files) {
  std::set<std::string> stale(std::begin(kCompanions), std::end(kCompanions));
  stale.insert(std::begin(kModelFiles), std::end(kModelFiles));
  for (const TokenizerFile& file : files) stale.erase(file.name);
  const bool one_file = flags.layout == kLlama2c;
  for (const char* name : kModelFiles) {
    if (one_file == (absl::string_view(name) == "model.bin")) stale.erase(name);
  }
  for (const std::string& name : stale) {
    std::error_code error;
    const fs::path path = fs::path(flags.out) / name;
    if (!fs::is_regular_file(path, error)) continue;
    if (!fs::remove(path, error) && error) return SystemStatus("remove", path.string(), error.value());
  }
  return absl::OkStatus();
}

int64_t CountNumbers(const PublishedModel& model) {
  int64_t count = 0;
  const auto add = [&](const auto& published) {
    for (const auto& [name, tensor] : published.weights.tensors()) count += tensor.type.shape.elements();
  };
  std::visit(add, model);
  return count;
}

absl::Status Convert(const ConvertFlags& flags) {
  if (flags.model.empty()) return absl::InvalidArgumentError("--model is missing: a folder, or a file of llama2.c");
  if (flags.out.empty()) return absl::InvalidArgumentError("--out=DIR is missing");
  const absl::StatusOr<std::vector<TokenizerFile>> files = CompanionsOf(flags);
  if (!files.ok()) return UsageError(files.status());
  WEFT_RETURN_IF_ERROR(UsageError(CheckOutput(flags, *files)));
  const absl::StatusOr<PublishedModel> model = OpenPublished(flags.model);
  if (!model.ok()) return UsageError(model.status());
  WEFT_RETURN_IF_ERROR(CheckTokenizer(*files, *model));

  std::error_code error;
  const bool was_there = fs::exists(flags.out, error);
  fs::create_directories(flags.out, error);
  if (error) return UsageError(SystemStatus("create", flags.out, error.value()));
  absl::Status status = Write(flags, *model, *files);
  if (status.ok()) status = RemoveStale(flags, *files);
  if (!status.ok()) {
    if (!was_there) fs::remove_all(flags.out, error);
    return status;
  }
  std::printf("%s: %lld numbers%s\n", flags.out.c_str(), static_cast<long long>(CountNumbers(*model)),
              files->empty() ? ", and no tokenizer, as none lies beside the model" : "");
  return absl::OkStatus();
}

Command MakeCommand(CLI::App* weft, const char* name, const char* about, Hyperparameters (*table)(ConvertFlags*)) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* app = AddCommand(weft, name, about);
  AddFlags(app, table(flags.get()), &flags->given);
  return {absl::StrCat("weft ", name), app, [flags, table]() -> absl::Status {
            ConvertFlags own = *flags;
            WEFT_RETURN_IF_ERROR(SetFromFlags(own.given, table(&own)));
            return Convert(own);
          }};
}

}  // namespace

Command ImportCommand(CLI::App* weft) {
  return MakeCommand(weft, "import",
                     "Writes a model of another layout as a folder of Hugging Face's layout, in f32, after checking "
                     "every key and every tensor.",
                     ImportTable);
}

Command ExportCommand(CLI::App* weft) {
  return MakeCommand(weft, "export", "Writes a model in the layout of another program.", ExportTable);
}

}  // namespace weft
