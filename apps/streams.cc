// Files are read whole. A line of standard input is waited for only after the answers to earlier lines are flushed.
#include "weft/apps/streams.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "weft/apps/flags.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/formats/run_folder.h"
#include "weft/lab/estimate/available_memory.h"

namespace weft {

namespace fs = std::filesystem;

bool ReadsStandardInput(const std::vector<std::string>& files) {
  return files.empty() || (files.size() == 1 && files[0] == kStandardInput);
}

absl::Status InputError(const absl::Status& status, const std::vector<std::string>& files) {
  return ReadsStandardInput(files) ? Failure(status) : UsageError(status);
}

absl::Status ForEachLine(const std::vector<std::string>& files,
                         const std::function<absl::Status(absl::string_view)>& line) {
  LineReader reader(files);
  while (true) {
    const absl::StatusOr<TextLines> next = reader.Next(/*max_lines=*/1);
    if (!next.ok()) return InputError(next.status(), files);
    if (next->lines.empty()) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(InputError(Annotate(line(next->lines[0]), next->Location(0)), files));
    if (ReadsStandardInput(files)) std::fflush(stdout);
  }
}

absl::Status AnswerLines(const std::vector<std::string>& files, size_t max_lines,
                         const std::function<absl::StatusOr<TokenIds>(absl::string_view line)>& encode,
                         const std::function<absl::Status(const TextLines&, absl::Span<const TokenIds>)>& answer) {
  const auto take = [&](const TextLines& lines, absl::Span<const TokenIds> ids) -> absl::Status {
    WEFT_RETURN_IF_ERROR(Failure(answer(lines, ids)));
    if (ReadsStandardInput(files)) std::fflush(stdout);
    return absl::OkStatus();
  };
  return InputError(EncodeLines(files, max_lines, encode, take), files);
}

std::FILE* SummaryStream(const std::string& out) { return out == kStandardOutput ? stderr : stdout; }

absl::Status CheckOut(const std::string& flag, const std::string& out, bool overwrite) {
  if (out == kStandardOutput) return absl::OkStatus();
  std::error_code error;
  const fs::file_status status = fs::symlink_status(out, error);  // the link itself, since writing would replace it
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return InvalidArgument("--", flag, ": ", out, " is not a file");
  }
  if (fs::exists(status) && !overwrite) {
    return InvalidArgument("--", flag, ": ", out, " is there: --overwrite replaces it");
  }
  const fs::path folder = fs::absolute(out, error).parent_path();
  if (error || !fs::is_directory(folder, error)) {
    return InvalidArgument("--", flag, ": there is no folder ", folder.string());
  }
  return UsageError(CheckWritable(out));
}

absl::Status CheckNotOut(const std::string& flag, const std::string& input, const std::string& out) {
  std::error_code error;  // of a file that is missing
  if (!fs::equivalent(input, out, error)) return absl::OkStatus();
  return InvalidArgument("--", flag, " and --out are the same, ", out);
}

absl::Status WriteOut(const std::string& out, bool overwrite, absl::string_view text) {
  if (out == kStandardOutput) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return absl::OkStatus();
  }
  return UsageError(WriteFile(out, {text}, overwrite ? IfThere::kReplace : IfThere::kFail));
}

std::string Printable(absl::string_view text, absl::string_view kept) {
  std::string printable;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool begins_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0;
    const bool ends_c1 = byte >= 0x80 && byte < 0xA0 && i > 0 && static_cast<uint8_t>(text[i - 1]) == 0xC2;
    const bool control = byte < 0x20 || byte == 0x7F || begins_c1 || ends_c1;
    if (control && !absl::StrContains(kept, text[i])) {
      absl::StrAppendFormat(&printable, "\\x%02x", byte);
    } else {
      printable += text[i];
    }
  }
  return printable;
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", Printable(note).c_str());
}

std::string MemoryNote(const std::string& model, uint64_t memory) {
  std::error_code error;
  const std::string of_run = IsRun(model) ? RunWeightsFile(model) : "";
  fs::path file = of_run.empty() ? model : of_run;
  if (fs::is_directory(file, error)) file /= kLastWeights;
  const uint64_t bytes = fs::file_size(file, error);
  if (error || bytes <= memory) return "";
  return absl::StrFormat(
      "note: %s has %.1f GB, but %.1f GB of memory are available. A run and a folder of weft quantize work in their "
      "own format, but slowly: the system reads weights from the disk again for each token. Weights that must be "
      "converted may not fit.\n",
      file.string(), static_cast<double>(bytes) / 1e9, static_cast<double>(memory) / 1e9);
}

void PrintMemoryNote(const std::string& model) {
  const uint64_t memory = AvailableMemory();  // 0: the system does not tell
  if (memory > 0) std::fputs(MemoryNote(model, memory).c_str(), stderr);
}

}  // namespace weft
