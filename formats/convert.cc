// A conversion writes all files into a temporary folder inside the output folder, then renames each file to its place.
#include "weft/formats/convert.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/formats/generation.h"
#include "weft/formats/published.h"
#include "weft/formats/run_folder.h"
#include "weft/formats/token_texts.h"
#include "weft/formats/weight_files.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// These files belong to a model beside its configuration, weights and tokenizer. They are copied unchanged.
constexpr const char* kModelCompanions[] = {"preprocessor_config.json",
                                            // Of sentence-transformers, beside kSentenceConfigs.
                                            "modules.json", "config_sentence_transformers.json",
                                            "1_Pooling/config.json"};
// Returns the names of files that belong to a tokenizer, beside the files that LoadTokenizer reads.
std::set<std::string> TokenizerCompanions() {
  std::set<std::string> names = {"added_tokens.json"};
  for (const char* const side : {"source", "target"}) {
    for (const std::string& name : TokenListNames(side)) names.insert(name);
  }
  return names;
}

// Returns the names of all files that are copied unchanged. `tokenizer`: whether a tokenizer's files are among them.
std::set<std::string> CompanionNames(bool tokenizer = true) {
  std::set<std::string> names(std::begin(kModelCompanions), std::end(kModelCompanions));
  names.insert(std::begin(kSentenceConfigs), std::end(kSentenceConfigs));
  if (!tokenizer) return names;
  names.merge(TokenizerCompanions());
  const std::vector<std::string> read = TokenizerFileNames();
  names.insert(read.begin(), read.end());
  return names;
}

// Returns `path` if it is a folder; otherwise returns the folder that contains the file.
fs::path FolderOf(const fs::path& path) {
  if (IsFolder(path.string())) return path;
  const fs::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

absl::StatusOr<std::vector<TokenizerFile>> CompanionsOf(const ConvertOptions& options) {
  std::error_code error;
  std::vector<TokenizerFile> files;
  const auto add = [&](const fs::path& folder, const std::string& name) {
    if (fs::is_regular_file(folder / name, error)) files.push_back({(folder / name).string(), name});
  };
  const std::string model = BaseOf(options.model);
  const bool folder = fs::is_directory(model, error), beside = options.tokenizer.empty();
  if (beside && !folder) {
    absl::StatusOr<std::vector<TokenizerFile>> own = TokenizerFiles(TokenizerOf(options.model));
    if (!own.ok() && !absl::IsNotFound(own.status())) return own;
    if (own.ok()) files = *std::move(own);  // a model without a tokenizer can be converted, too
  }
  if (!beside) {
    WEFT_ASSIGN_OR_RETURN(files, TokenizerFiles(options.tokenizer));
    const bool own = fs::is_directory(options.tokenizer, error);
    for (const std::string& name : TokenizerCompanions()) {
      if (own && FindRow(files, name) == nullptr) add(options.tokenizer, name);
    }
  }
  for (const std::string& name : CompanionNames(beside)) {
    if (folder) add(model, name);
  }
  if (!folder) absl::c_move(PoolingFiles(model), std::back_inserter(files));
  const std::string& source = beside ? model : options.tokenizer;
  for (const std::string& name : ChatTemplateFiles(source)) {
    if (name != kChatTemplateFile) add(source, name);
  }
  return files;
}

// Returns the folders in `out` in which a ModelConversion writes its files. Their names are numbers of processes.
std::vector<fs::path> TemporaryFolders(const fs::path& out) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(out, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    int64_t process;
    const bool temporary = absl::ConsumeSuffix(&number, kTemporarySuffix) && absl::SimpleAtoi(number, &process);
    if (temporary && entry.is_directory(error)) folders.push_back(entry.path());
  }
  return folders;
}

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path());
  }
  return files;
}

// Reports whether `out` has nothing except what conversions left that were killed.
bool IsEmpty(const fs::path& out) {
  std::error_code error;
  const auto entries = std::distance(fs::directory_iterator(out, error), fs::directory_iterator());
  return static_cast<size_t>(entries) == TemporaryFolders(out).size();
}

// Returns AlreadyExists if `out` is a file, or a folder with the model, a file to copy, a training run or, unless
// `overwrite` is set, any other file.
absl::Status CheckOutput(const ConvertOptions& options, const std::vector<TokenizerFile>& files) {
  const std::string& out = options.out;
  std::error_code error;
  if (!fs::exists(out, error)) return absl::OkStatus();
  if (!fs::is_directory(out, error)) return absl::AlreadyExistsError(absl::StrCat(out, " exists, and is not a folder"));
  // Reports whether `path` is `out` or a file in `out`, either as written or after symbolic links are resolved.
  const auto is_out = [&](const fs::path& path) {
    return fs::equivalent(out, FolderOf(path), error) ||
           fs::equivalent(out, FolderOf(fs::canonical(path, error)), error);
  };
  if (is_out(ParseRunPath(options.model).folder))
    return absl::AlreadyExistsError(absl::StrCat("out is the model's own folder, ", out));
  for (const TokenizerFile& file : files) {
    if (!is_out(file.path)) continue;
    return absl::AlreadyExistsError(absl::StrCat("out, ", out, ", is the folder of ", file.path));
  }
  if (IsRun(out)) {
    return absl::AlreadyExistsError(
        absl::StrCat("out: ", out, " is the folder of a training run; models are not written there"));
  }
  if (options.overwrite || IsEmpty(out)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(out, " is not empty: set overwrite to replace the files of a model there"));
}

absl::Status CheckTokenizer(const std::vector<TokenizerFile>& files, const PublishedModel& model) {
  const ModelFamily& family = FamilyOf(model);
  if (family.vocabulary == nullptr) return absl::OkStatus();
  for (const TokenizerFile& file : files) {
    // A file that LoadTokenizer can't read is copied without this check.
    const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(file.path);
    if (!tokenizer.ok()) continue;
    WEFT_RETURN_IF_ERROR(CheckVocabulary(file.path, (*tokenizer)->vocabulary_size(), family.vocabulary(model)));
  }
  return absl::OkStatus();
}

// Adds the end tokens of a model that continues texts and whose files do not name them, such as a run. Without them,
// transformers would take the default of the model's type.
absl::Status NameEndTokens(const ConvertOptions& options, const PublishedModel& model, Json* config) {
  if (!FamilyOf(model).continues_texts) return absl::OkStatus();
  const std::string path = options.tokenizer.empty() ? TokenizerOf(options.model) : options.tokenizer;
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(path);
  if (!tokenizer.ok()) return absl::OkStatus();
  return AddEndTokens(options.model, **tokenizer, FamilyOf(model).vocabulary(model), config);
}

// Rewrites `contents` of a tokenizer.json of Weft's kind "character" as a file that transformers reads. Also writes a
// tokenizer_config.json, unless `files` has one; otherwise transformers would take the class of the model_type.
absl::Status PublishTokenizer(const std::vector<TokenizerFile>& files, const std::string& folder,
                              std::string* contents) {
  const std::optional<std::string> published = PublishedCharacters(*contents);
  if (!published) return absl::OkStatus();
  *contents = *published;
  constexpr char kConfig[] = "tokenizer_config.json";
  if (FindRow(files, kConfig) != nullptr) return absl::OkStatus();
  return WriteFile(absl::StrCat(folder, "/", kConfig),
                   {R"({"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false})", "\n"});
}

// Moves all files of `from` and its subfolders except config.json into `to`, and sets `names` to the paths of all files
// in `to`. If a folder in `to` has the name of one of these files, moves nothing and returns an error. First removes an
// old config.json: if the process is killed before the new one is there, no reader takes files of two models for one.
absl::Status MoveFiles(const fs::path& from, const fs::path& to, std::set<std::string>* names) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from, error)) {
    const fs::path file = entry.path().lexically_relative(from), target = to / file;
    if (entry.is_directory(error)) continue;
    names->insert(file.string());
    if (fs::is_directory(target, error)) return SystemStatus("write", target.string(), EISDIR);
    fs::create_directories(target.parent_path(), error);
    if (error) return SystemStatus("create", target.parent_path().string(), error.value());
  }
  if (names->empty()) return SystemStatus("read", from.string(), ENOENT);
  if (!fs::remove(ConfigPath(to), error) && error) return SystemStatus("remove", ConfigPath(to), error.value());
  for (const std::string& file : *names) {
    if (file != kConfigFile) fs::rename(from / file, to / file, error);
    if (error) return SystemStatus("write", (to / file).string(), error.value());
  }
  return SyncFolder(to.string());
}

}  // namespace

absl::StatusOr<ModelConversion> ModelConversion::Prepare(const ConvertOptions& options) {
  ModelConversion conversion(options);
  PublishedModel& model = conversion.model_;
  WEFT_ASSIGN_OR_RETURN(conversion.files_, CompanionsOf(options));
  WEFT_RETURN_IF_ERROR(CheckOutput(options, conversion.files_));
  WEFT_ASSIGN_OR_RETURN(model, ReadModel(options.model, options.read));
  WEFT_RETURN_IF_ERROR(CheckFinite(options.model, WeightsOf(model)));
  WEFT_RETURN_IF_ERROR(CheckTokenizer(conversion.files_, model));
  WEFT_ASSIGN_OR_RETURN(conversion.format_, FormatToWrite(options.format, FamilyOf(model)));
  if (!conversion.format_->keeps_dtypes) WEFT_RETURN_IF_ERROR(Annotate(WeightsOf(model).ConvertToF32(), options.model));
  WEFT_ASSIGN_OR_RETURN(Json generation, GenerationConfigOf(options.model));
  WEFT_RETURN_IF_ERROR(NameEndTokens(options, model, &generation));
  if (!generation.empty()) conversion.generation_ = generation.dump(2, ' ', false, Json::error_handler_t::replace);
  return conversion;
}

absl::Status ModelConversion::WriteFiles(const std::string& folder) const {
  for (const TokenizerFile& file : files_) {
    WEFT_ASSIGN_OR_RETURN(std::string contents, ReadContents(file));
    if (!format_->is_own && file.name == "tokenizer.json") {
      WEFT_RETURN_IF_ERROR(PublishTokenizer(files_, folder, &contents));
    }
    const fs::path to = fs::path(folder) / file.name;
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    if (error) return SystemStatus("create", to.parent_path().string(), error.value());
    WEFT_RETURN_IF_ERROR(WriteFile(to.string(), {contents}));
  }
  if (!generation_.empty()) {
    WEFT_RETURN_IF_ERROR(WriteFile(absl::StrCat(folder, "/", kGenerationConfig), {generation_, "\n"}));
  }
  // A format may read the files that are there and change the tokenizer's, so it is last.
  WEFT_RETURN_IF_ERROR(format_->write(model_, folder, options_.write));
  for (const fs::path& file : format_->is_whole ? FilesIn(folder) : std::vector<fs::path>()) {
    std::error_code error;
    const bool own = absl::c_linear_search(format_->files, file.filename().string());
    if (!own && !fs::remove(file, error)) return SystemStatus("remove", file.string(), error.value());
  }
  if (options_.max_shard_size == 0) return absl::OkStatus();
  if (Exists(WeightsPath(folder))) return DivideWeights(folder, options_.max_shard_size);
  return InvalidArgument("max_shard_size is ", options_.max_shard_size, ", but the layout ", options_.format,
                         " has one file of weights");
}

// Removes the files of an older model, known by their names, that this conversion has not written. A reader would take
// these files for a part of the new model.
absl::Status ModelConversion::RemoveStale(const std::set<std::string>& written) const {
  std::error_code error;
  std::set<std::string> stale = CompanionNames();
  stale.insert({kWeightIndex, kGenerationConfig});
  for (const std::string& name : ChatTemplateFiles(options_.out)) stale.insert(name);
  for (const Format* const format : Formats()) stale.insert(format->files.begin(), format->files.end());
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.out, error)) {
    if (IsWeightShard(entry.path().filename().string())) stale.insert(entry.path().filename().string());
  }
  for (const std::string& name : stale) {
    if (written.contains(name)) continue;
    const fs::path path = fs::path(options_.out) / name;
    if (!fs::is_regular_file(path, error)) continue;
    if (!fs::remove(path, error) && error) return SystemStatus("remove", path.string(), error.value());
  }
  return absl::OkStatus();
}

std::string ModelConversion::TemporaryFolder() const {
  return absl::StrCat(options_.out, "/", getpid(), kTemporarySuffix);
}

absl::Status ModelConversion::Write(absl::FunctionRef<void()> before_moves) const {
  const std::string& out = options_.out;
  std::error_code error;
  const bool existed = fs::exists(out, error);
  fs::create_directories(out, error);
  if (error) return InvalidArgument(SystemStatus("create", out, error.value()).message());
  WEFT_ASSIGN_OR_RETURN(const Descriptor lock, LockFolder(out));
  for (const fs::path& left : TemporaryFolders(out)) fs::remove_all(left, error);
  const std::string temporary = TemporaryFolder();
  fs::create_directory(temporary, error);
  absl::Status status = error ? SystemStatus("create", temporary, error.value()) : WriteFiles(temporary);
  std::set<std::string> written;
  before_moves();
  if (status.ok()) status = MoveFiles(temporary, out, &written);
  if (status.ok()) status = RemoveStale(written);
  if (status.ok() && written.contains(kConfigFile)) {
    fs::rename(ConfigPath(temporary), ConfigPath(out), error);
    status = error ? SystemStatus("write", ConfigPath(out), error.value()) : SyncFolder(out);
  }
  fs::remove_all(temporary, error);
  for (const std::string& name : written) {
    const std::string path = absl::StrCat(out, "/", name);
    if (status.ok() && !Exists(path)) status = absl::AbortedError(absl::StrCat(path, " was removed as it was written"));
  }
  if (!status.ok() && !existed) fs::remove_all(out, error);
  return status;
}

uint64_t ModelConversion::StoredBytes() const {
  const absl::StatusOr<WeightFiles> files = FindWeightFiles(ModelFile(options_.out));
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& [path, names] : files.ok() ? files->tensors : WeightFiles().tensors) {
    bytes += fs::file_size(path, error);
  }
  return bytes;
}

bool ModelConversion::has_tokenizer() const {
  const std::set<std::string> others = CompanionNames(/*tokenizer=*/false);
  return absl::c_any_of(files_, [&](const TokenizerFile& file) { return !others.contains(file.name); });
}

int64_t ModelConversion::CountWeights() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : WeightsOf(model_).tensors()) count += tensor.type.shape.elements();
  return count;
}

}  // namespace weft
