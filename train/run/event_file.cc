// An event file is a sequence of records, as TensorFlow's TFRecord files are: the length in 8 bytes, its checksum in 4,
// the bytes of an Event, and their checksum in 4. Numbers are little-endian. The first event has the file's version.
// Histograms and texts are tensors, for TensorBoard's plugins "histograms" and "text".
#include "weft/train/run/event_file.h"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"
#include "weft/train/run/event.pb.h"

namespace weft {
namespace {

constexpr char kVersion[] = "brain.Event:2";
constexpr size_t kHeaderBytes = 12, kFooterBytes = 4;

// Returns the CRC-32C of `bytes`, masked as in TFRecord files: rotated, and increased by a constant. Without the mask,
// a CRC over bytes that end with their own CRC would be a constant.
uint32_t MaskedCrc(absl::string_view bytes) {
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // isa-l only reads it
  const uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~0u);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

struct Record {
  enum State { kWhole, kIncomplete, kDamaged } state;
  std::string bytes;  // of the event
};

// Reads the record at `offset`.
absl::StatusOr<Record> ReadRecord(const RandomAccessFile& file, int64_t offset) {
  const auto rest = static_cast<uint64_t>(file.size() - offset);
  if (rest < kHeaderBytes) return Record{Record::kIncomplete};
  std::string header(kHeaderBytes, '\0');
  WEFT_RETURN_IF_ERROR(file.Read(offset, header.size(), header.data()));
  uint64_t length;
  if (Bytes(MaskedCrc(header.substr(0, sizeof(length)))) != header.substr(sizeof(length))) {
    return Record{Record::kDamaged};
  }
  std::memcpy(&length, header.data(), sizeof(length));
  if (length > std::numeric_limits<int>::max() - kFooterBytes) return Record{Record::kDamaged};
  if (rest - kHeaderBytes < length + kFooterBytes) return Record{Record::kIncomplete};
  std::string bytes(length + kFooterBytes, '\0');
  WEFT_RETURN_IF_ERROR(file.Read(offset + kHeaderBytes, bytes.size(), bytes.data()));
  const std::string footer = bytes.substr(length);
  bytes.resize(length);
  return Record{Bytes(MaskedCrc(bytes)) == footer ? Record::kWhole : Record::kDamaged, std::move(bytes)};
}

double Now() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

event::Event EventAt(int64_t step, double wall_time) {
  event::Event event;
  event.set_step(step);
  event.set_wall_time(wall_time);
  return event;
}

// Adds to `event` a value with an empty tensor, for a plugin of TensorBoard.
event::Tensor* AddTensor(event::Event* event, const std::string& tag, const char* plugin, event::DataType dtype) {
  event::Summary::Value* const value = event->mutable_summary()->add_value();
  value->set_tag(tag);
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name(plugin);
  value->mutable_metadata()->set_data_class(event::DATA_CLASS_TENSOR);
  value->mutable_tensor()->set_dtype(dtype);
  value->mutable_tensor()->mutable_tensor_shape();
  return value->mutable_tensor();
}

}  // namespace

absl::StatusOr<EventFile> EventFile::Open(const std::string& folder, int64_t step) {
  const std::string path = absl::StrCat(folder, "/", kEventFile);
  EventFile file(path, Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)));
  if (file.file_.get() < 0) return SystemStatus("open", path, errno);
  WEFT_RETURN_IF_ERROR(file.Keep(step));
  WEFT_RETURN_IF_ERROR(SyncFolder(folder));
  return file;
}

// Removes what Open promises to remove. If nothing is kept, writes the first event.
absl::Status EventFile::Keep(int64_t step) {
  WEFT_ASSIGN_OR_RETURN(const RandomAccessFile file, RandomAccessFile::Open(path_, /*in_order=*/true));
  int64_t kept = 0;
  while (step >= 0 && kept < file.size()) {
    WEFT_ASSIGN_OR_RETURN(const Record record, ReadRecord(file, kept));
    if (record.state == Record::kIncomplete) break;
    event::Event event;
    const bool whole = record.state == Record::kWhole && event.ParseFromString(record.bytes) &&
                       (kept > 0 || event.file_version() == kVersion);
    if (!whole) {
      warning_ = absl::StrCat(path_, ": the record at byte ", kept, " is damaged; the last ", file.size() - kept,
                              " bytes of the file were removed");
      break;
    }
    if (event.step() > step) break;
    if (event.step() != step_) tags_.clear();
    step_ = event.step();
    for (const event::Summary::Value& value : event.summary().value()) tags_.insert(value.tag());
    kept += static_cast<int64_t>(kHeaderBytes + record.bytes.size() + kFooterBytes);
  }
  if (kept != file.size() && ftruncate(file_.get(), kept) != 0) return SystemStatus("write", path_, errno);
  if (kept > 0) return absl::OkStatus();
  event::Event version = EventAt(0, Now());
  version.set_file_version(kVersion);
  return Write(version.SerializeAsString());
}

absl::Status EventFile::Write(absl::string_view record) {
  const std::string length = Bytes(uint64_t{record.size()});
  return file_.Write(absl::StrCat(length, Bytes(MaskedCrc(length)), record, Bytes(MaskedCrc(record))), path_);
}

absl::StatusOr<bool> EventFile::IsNew(int64_t step, const std::string& tag) {
  if (step < step_) {
    return InvalidArgument(path_, ": an event of step ", step, " cannot follow one of step ", step_);
  }
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(tag), "the tag of an event"));
  if (step != step_) tags_.clear();
  step_ = step;
  return tags_.insert(tag).second;
}

absl::Status EventFile::AppendScalars(int64_t step, double wall_time, absl::Span<const Scalar> scalars) {
  event::Event event = EventAt(step, wall_time);
  for (const Scalar& scalar : scalars) {
    WEFT_ASSIGN_OR_RETURN(const bool is_new, IsNew(step, scalar.tag));
    if (!is_new) continue;
    event::Summary::Value* const value = event.mutable_summary()->add_value();
    value->set_tag(scalar.tag);
    value->set_simple_value(static_cast<float>(scalar.value));
  }
  return event.has_summary() ? Write(event.SerializeAsString()) : absl::OkStatus();
}

absl::Status EventFile::AppendHistogram(int64_t step, double wall_time, const std::string& tag, const Tensor& values) {
  if (!IsFloat(values.type.dtype)) {
    return InvalidArgument("a histogram needs a floating-point dtype, but '", tag, "' is ", ToString(values.type));
  }
  WEFT_ASSIGN_OR_RETURN(const bool is_new, IsNew(step, tag));
  if (!is_new) return absl::OkStatus();
  const Histogram histogram = Dispatch(
      values.type.dtype, [&](auto zero) { return CountIntervals<decltype(zero)>(values.span<decltype(zero)>()); });
  event::Event event = EventAt(step, wall_time);
  event::Tensor* const tensor = AddTensor(&event, tag, "histograms", event::DT_DOUBLE);
  for (const int64_t size : {kHistogramIntervals, 3}) tensor->mutable_tensor_shape()->add_dim()->set_size(size);
  tensor->set_tensor_content(std::string(reinterpret_cast<const char*>(histogram.data()), sizeof(histogram)));
  return Write(event.SerializeAsString());
}

absl::Status EventFile::AppendText(int64_t step, double wall_time, const std::string& tag, absl::string_view text) {
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(text), absl::StrCat("the text '", tag, "'")));
  WEFT_ASSIGN_OR_RETURN(const bool is_new, IsNew(step, tag));
  if (!is_new) return absl::OkStatus();
  event::Event event = EventAt(step, wall_time);
  AddTensor(&event, tag, "text", event::DT_STRING)->add_string_val(std::string(text));
  return Write(event.SerializeAsString());
}

absl::Status EventFile::AppendMetrics(const Metrics& metrics) {
  std::vector<Scalar> scalars;
  if (metrics.training) {
    scalars = {{"loss/train", metrics.training->loss},
               {"learning_rate", metrics.training->learning_rate},
               {"gradient_norm", metrics.training->gradient_norm},
               {"tokens_per_second", metrics.training->tokens_per_second}};
  }
  for (const bool averaged : {false, true}) {
    for (const auto& [name, value] : metrics.Evaluated(averaged)) {
      scalars.push_back({absl::StrCat(name, averaged ? "/validation_ema" : "/validation"), value});
    }
  }
  if (metrics.memory > 0) scalars.push_back({"memory", static_cast<double>(metrics.memory)});
  return AppendScalars(metrics.step, Now(), scalars);
}

absl::Status EventFile::AppendWeights(int64_t step, const Parameters& parameters) {
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    WEFT_ASSIGN_OR_RETURN(const Tensor weight, parameters.Find(name));
    if (!IsFloat(weight.type.dtype)) continue;
    WEFT_RETURN_IF_ERROR(AppendHistogram(step, Now(), absl::StrCat("weights/", name), weight));
  }
  return absl::OkStatus();
}

// TensorBoard shows texts as Markdown, in which lines that begin with four spaces are shown as they are.
absl::Status EventFile::AppendLines(int64_t step, const std::string& tag, absl::string_view text) {
  const std::string lines = absl::StrReplaceAll(ReplaceInvalidUtf8(text), {{"\n", "\n    "}});
  return AppendText(step, Now(), tag, absl::StrCat("    ", lines, "\n"));
}

absl::Status EventFile::Sync() {
  return fsync(file_.get()) == 0 ? absl::OkStatus() : SystemStatus("write", path_, errno);
}

}  // namespace weft
