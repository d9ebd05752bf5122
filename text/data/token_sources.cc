#include "weft/text/data/token_sources.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/checksum.h"
#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {
namespace {

struct NamedFolder {
  std::string path;
  std::optional<double> weight;
};

// Reads "DIR,DIR" or "DIR:WEIGHT,DIR:WEIGHT". A path that exists as a whole may contain commas and colons.
std::vector<NamedFolder> ParseList(const std::string& data) {
  if (Exists(data)) return {{data}};
  std::vector<NamedFolder> folders;
  for (const absl::string_view item : absl::StrSplit(data, ',')) {
    const size_t colon = item.rfind(':');
    double weight = 0;
    if (colon != item.npos && !Exists(std::string(item)) && absl::SimpleAtod(item.substr(colon + 1), &weight)) {
      folders.push_back({std::string(item.substr(0, colon)), weight});
    } else {
      folders.push_back({std::string(item)});
    }
  }
  return folders;
}

absl::Status CheckLongEnough(const std::string& path, const TokenFiles& files, int64_t context, bool whole) {
  const int64_t train = files.size(DataSplit::kTrain), validation = files.size(DataSplit::kValidation);
  if (train > context && validation > context) return absl::OkStatus();
  return InvalidArgument(
      path, " is too short for a context of ", context, ": it has ", files.tokens(), " tokens",
      whole ? ""
            : absl::StrCat(", of which the last ", validation, " are for validation, which needs more than ", context));
}

}  // namespace

std::vector<std::string> TokenSources::Folders(const std::string& data) {
  std::vector<std::string> paths;
  for (NamedFolder& folder : ParseList(data)) paths.push_back(std::move(folder.path));
  return paths;
}

bool TokenSources::Names(const std::string& data) {
  return !data.empty() && TokenFiles::IsAt(ParseList(data).front().path);
}

TokenSources::TokenSources(std::shared_ptr<const TokenSource> source, std::string fingerprint)
    : fingerprint_(std::move(fingerprint)) {
  weighted_.push_back({source.get()});
  sources_.push_back(std::move(source));
}

absl::StatusOr<TokenSources> TokenSources::Open(const std::string& data, int64_t context, Splits splits,
                                                MissingShards missing) {
  const std::vector<NamedFolder> folders = ParseList(data);
  TokenSources all;
  std::string tokenizer, parts;
  for (const auto& [path, weight] : folders) {
    if (weight.has_value() != folders.front().weight.has_value()) {
      return InvalidArgument("'", data, "': either all folders have a weight or none has one");
    }
    if (weight.has_value() && !(*weight > 0 && std::isfinite(*weight))) {
      return InvalidArgument("the weight of ", path, " is ", *weight, ", wanted a positive number");
    }
    WEFT_ASSIGN_OR_RETURN(TokenFiles opened, TokenFiles::Open(path, missing));
    if (splits == kWhole) opened.UseWhole();
    WEFT_RETURN_IF_ERROR(CheckLongEnough(path, opened, context, splits == kWhole));
    const auto files = std::make_shared<const TokenFiles>(std::move(opened));
    if (all.sources_.empty()) {
      all.tokenizer_ = path;
      tokenizer = files->index().tokenizer;
    }
    if (files->index().tokenizer != tokenizer) {
      return InvalidArgument(path, " has another tokenizer than ", all.tokenizer_);
    }
    all.weighted_.push_back({files.get(), weight.value_or(static_cast<double>(files->size(DataSplit::kTrain)))});
    absl::StrAppend(&parts, files->Fingerprint(), " ", all.weighted_.back().weight, "\n");
    all.sources_.push_back(files);
  }
  if (splits == kWhole) parts += "whole\n";
  all.fingerprint_ = Checksum(parts);
  return all;
}

void TokenSources::SetValidation(TokenSources validation) {
  validation_ = std::move(validation.weighted_);
  sources_.insert(sources_.end(), validation.sources_.begin(), validation.sources_.end());
}

int64_t TokenSources::missing_files() const {
  int64_t sum = 0;
  for (const auto& source : sources_) sum += source->missing_files();
  return sum;
}

int64_t TokenSources::size(DataSplit split) const {
  int64_t sum = 0;
  for (const WeightedTokens& each : Weighted(split)) sum += each.source->size(split);
  return sum;
}

absl::Status ReadAhead::Take(const WindowOptions& now, const WindowOptions& next, TokenBatch* out) {
  absl::Status status;
  const bool asked = drawn_.valid();
  if (asked) status = drawn_.get();
  if (asked && asked_ == now) {
    std::swap(*out, batch_);
  } else {
    status = sources_->Sample(now, out);
  }
  asked_ = next;
  drawn_ = std::async(std::launch::async, [this] { return sources_->Sample(asked_, &batch_); });
  return status;
}

}  // namespace weft
