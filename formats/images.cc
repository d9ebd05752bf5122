// A file is recognised by its contents: an IDX file of bytes begins with the bytes 0, 0 and 8, PNG and JPEG files have
// signatures, and the first line of a list has a tab. Any other file is read as CSV.
#include "weft/formats/images.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/decimal.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/text/data/gzip.h"
#include "weft/text/data/labelled_examples.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxClasses = 65536;

absl::Status Bad(const Images& images, size_t line, absl::string_view what) {
  return InvalidArgument(images.path, ", line ", line, ": ", what);
}

// How often a column has each of its numbers.
struct Column {
  std::map<float, int64_t> counts;

  size_t size() const { return counts.size(); }
  float highest() const { return counts.rbegin()->first; }
  bool HasGap() const { return static_cast<float>(size()) < highest() + 1; }
  // Returns how often the column has its most frequent number.
  int64_t Mode() const {
    int64_t mode = 0;
    for (const auto& [value, count] : counts) mode = std::max(mode, count);
    return mode;
  }
  // Reports whether the column has each of the labels 0, 1, ..., at least two of them.
  bool HasAllLabels() const {
    const auto is_whole = [](const auto& each) { return each.first == std::floor(each.first); };
    return size() >= 2 && !HasGap() && std::all_of(counts.begin(), counts.end(), is_whole);
  }
};

// Returns InvalidArgument if the labels of `images`, which come from the last column of a CSV, rather are pixels.
absl::Status CheckLabelColumn(const Images& images) {
  Column first, last;
  float brightest = 0;  // of the pixels behind the first column
  for (int64_t i = 0; i < images.size(); ++i) {
    ++first.counts[images[i].front()];
    for (const float pixel : images[i].subspan(1)) brightest = std::max(brightest, pixel);
    ++last.counts[static_cast<float>(images.labels[static_cast<size_t>(i)])];
  }
  // Labels are few numbers without gaps, of similar frequencies. A column of pixels has one number or very many, or
  // gaps that are large or beside a frequent number such as black.
  constexpr size_t kMany = 16;  // times the number of labels
  const bool pixels = last.size() == 1 || last.size() >= kMany * first.size() ||
                      2 * static_cast<float>(last.size()) <= last.highest() + 1 ||
                      (last.HasGap() && last.Mode() >= 2 * first.Mode());
  if (!first.HasAllLabels() || !pixels || last.highest() > brightest) return absl::OkStatus();
  return InvalidArgument(images.path, ": the last column of a line is taken for its label, and has ", last.size(),
                         " different values of 0 .. ", last.highest(), "; but the first column has each label of 0 .. ",
                         first.highest(), ". If it is the label, move it to the end of the line");
}

// Reads square pictures, with a label after the pixels of each. If `height` and `width` are given, reads pictures of
// that size; then a label after the pixels is optional and ignored.
absl::StatusOr<Images> ReadCsv(const std::string& path, absl::string_view text, int64_t height = 0, int64_t width = 0) {
  const bool labelled = height == 0;
  Images images = {.path = path, .height = height, .width = width};
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
    const auto count = static_cast<int64_t>(fields.size());
    const int64_t pixels = labelled || count == images.pixels_each() + 1 ? count - 1 : count;
    if (images.height == 0) {
      images.height = images.width = std::llround(std::sqrt(static_cast<double>(pixels)));
      if (pixels < 1 || images.pixels_each() != pixels) {
        return Bad(images, number, absl::StrCat(pixels, " pixels before the label are not a square"));
      }
    }
    if (pixels != images.pixels_each()) {
      return Bad(images, number,
                 absl::StrCat(pixels, " pixels, but ", labelled ? "the pictures before have " : "the model's have ",
                              images.pixels_each()));
    }
    for (int64_t i = 0; i < pixels; ++i) {
      float value;
      if (!ParseDecimal(fields[static_cast<size_t>(i)], &value)) {
        return Bad(images, number, absl::StrCat("'", fields[static_cast<size_t>(i)], "' is not a number"));
      }
      if (value < 0) {
        return Bad(images, number, absl::StrCat("the pixel ", fields[static_cast<size_t>(i)], " is less than 0"));
      }
      images.pixels.push_back(value);
    }
    if (!labelled) continue;
    double label;  // "3" or "3.0"
    if (!ParseDecimal(fields.back(), &label) || label < 0 || label >= kMaxClasses || label != std::floor(label)) {
      return Bad(images, number, absl::StrCat("the label '", fields.back(), "' is not a whole number of 0 .. 65535"));
    }
    images.labels.push_back(static_cast<int32_t>(label));
  }
  if (images.pixels.empty()) return InvalidArgument(path, ": there are no pictures in it");
  if (labelled) WEFT_RETURN_IF_ERROR(CheckLabelColumn(images));
  return images;
}

// An IDX file has two zero bytes, the type (1 byte; 8: bytes), the rank (1 byte), the sizes as big-endian 32-bit
// numbers, and then the data.
struct Idx {
  std::vector<int64_t> sizes;
  absl::string_view bytes;
};

bool IsIdx(absl::string_view file) { return absl::StartsWith(file, absl::string_view("\0\0\x08", 3)); }

absl::StatusOr<Idx> ParseIdx(const std::string& path, absl::string_view file, size_t rank) {
  const auto byte = [&](size_t i) { return static_cast<int64_t>(static_cast<uint8_t>(file[i])); };
  if (!IsIdx(file) || file.size() < 4 + 4 * rank || byte(3) != static_cast<int64_t>(rank)) {
    return InvalidArgument(path, ": it is not an IDX file of bytes of rank ", rank);
  }
  Idx idx;
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    const size_t at = 4 + 4 * i;
    idx.sizes.push_back(byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3));
    // The product of the sizes stops at 2^40, so that it can't overflow. No file has that many bytes.
    count = idx.sizes.back() > 0 && count > (int64_t{1} << 40) / idx.sizes.back() ? int64_t{1} << 40
                                                                                  : count * idx.sizes.back();
  }
  idx.bytes = file.substr(4 + 4 * rank);
  if (count == 0) return InvalidArgument(path, ": there are no ", rank == 3 ? "pictures" : "labels", " in it");
  if (static_cast<int64_t>(idx.bytes.size()) == count) return idx;
  return InvalidArgument(path, ": its header asks for ", count, " bytes, but it has ", idx.bytes.size());
}

absl::StatusOr<Images> ReadIdxPictures(const std::string& path, absl::string_view file) {
  WEFT_ASSIGN_OR_RETURN(const Idx pictures, ParseIdx(path, file, 3));
  Images images = {.path = path, .height = pictures.sizes[1], .width = pictures.sizes[2]};
  for (const char c : pictures.bytes) images.pixels.push_back(static_cast<uint8_t>(c));
  return images;
}

absl::StatusOr<Images> ReadIdx(const std::string& path, absl::string_view file, const std::string& labels) {
  if (labels.empty()) return InvalidArgument(path, ": an IDX file of pictures needs one of labels, too");
  WEFT_ASSIGN_OR_RETURN(const std::string label_file, ReadMaybeGzip(labels));
  WEFT_ASSIGN_OR_RETURN(Images images, ReadIdxPictures(path, file));
  WEFT_ASSIGN_OR_RETURN(const Idx numbers, ParseIdx(labels, label_file, 1));
  if (images.size() != numbers.sizes[0]) {
    return InvalidArgument(path, " has ", images.size(), " pictures, but ", labels, " has ", numbers.sizes[0],
                           " labels");
  }
  for (const char c : numbers.bytes) images.labels.push_back(static_cast<uint8_t>(c));
  return images;
}

// Reads a picture with `processor` and appends it to `images`. All pictures must have one size.
absl::Status AddPicture(const std::string& path, absl::string_view file, const ImageProcessor& processor,
                        Images* images) {
  WEFT_ASSIGN_OR_RETURN(const RgbPicture picture, processor.Read(path, file));
  if (images->height == 0) std::tie(images->height, images->width) = std::pair(picture.height, picture.width);
  if (picture.height != images->height || picture.width != images->width) {
    return InvalidArgument(path, " has ", picture.height, " x ", picture.width,
                           " pixels, but the pictures before have ", images->height, " x ", images->width);
  }
  images->processed = true;
  const std::vector<uint8_t>& pixels = picture.pixels;
  if (images->channels == 3) {
    images->pixels.insert(images->pixels.end(), pixels.begin(), pixels.end());
    return absl::OkStatus();
  }
  for (size_t i = 0; i < pixels.size(); i += 3) {
    if (images->channels != 1 || pixels[i] != pixels[i + 1] || pixels[i] != pixels[i + 2]) {
      return InvalidArgument(path, ": it is in colour, but the model takes pictures of ", images->channels,
                             images->channels == 1 ? " channel" : " channels");
    }
    images->pixels.push_back(pixels[i]);
  }
  return absl::OkStatus();
}

// Returns all files below `path`, sorted. A file's label is its folder's name. A file directly in `path` has none.
absl::StatusOr<LabelledExamples> ListFolder(const std::string& path) {
  LabelledExamples found;
  std::error_code error, ignored;
  fs::recursive_directory_iterator file(path, fs::directory_options::follow_directory_symlink, error);
  for (; !error && file != fs::end(file); file.increment(error)) {
    if (!file->is_regular_file(ignored)) continue;
    found.examples.push_back({.texts = {file->path()}, .line = 1});
    if (file.depth() > 0) found.examples.back().labels = {file->path().parent_path().filename()};
  }
  if (error) return InvalidArgument(path, ": ", error.message());
  absl::c_sort(found.examples, [](const auto& a, const auto& b) { return a.texts < b.texts; });
  for (LabelledExample& example : found.examples) {
    example.file = found.paths.size();
    found.paths.push_back(example.texts[0]);
  }
  return found;
}

// Reports whether `path` is a folder or a list of pictures. `file`: the contents of `path`, or "" for a folder.
bool IsListed(const std::string& path, absl::string_view file) {
  if (IsIdx(file) || IsPicture(file)) return false;
  return IsFolder(path) || absl::StrContains(file.substr(0, file.find('\n')), '\t');
}

absl::StatusOr<Images> ReadListed(const std::string& path, const ImageProcessor& processor, bool labelled,
                                  absl::Span<const std::string> classes) {
  const LabelledDataOptions lines = {.format = "lines"};
  const bool folder = IsFolder(path);
  WEFT_ASSIGN_OR_RETURN(const LabelledExamples listed,
                        folder ? ListFolder(path) : ReadLabelledExamples(absl::MakeConstSpan(&path, 1), lines));
  Images images = {.path = path, .channels = processor.channels};
  for (const LabelledExample& example : listed.examples) {
    const std::string file = (folder ? "" : fs::path(path).parent_path()) / fs::path(example.texts[0]);
    if (labelled && example.labels.empty()) return InvalidArgument(file, ": it is in no folder of a class");
    WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
    WEFT_RETURN_IF_ERROR(AddPicture(file, bytes, processor, &images));
  }
  if (images.pixels.empty()) return InvalidArgument(path, ": there are no pictures in it");
  if (!labelled) return images;
  images.classes = classes.empty() ? LabelNames(listed) : std::vector<std::string>(classes.begin(), classes.end());
  WEFT_ASSIGN_OR_RETURN(const auto ids, LabelIds(listed, images.classes));
  for (const std::vector<int32_t>& each : ids) images.labels.push_back(each[0]);
  return images;
}

// Returns the contents of a file, decompressed if they are gzip-compressed, or "" for a folder.
absl::StatusOr<std::string> ReadBytes(const std::string& path) {
  if (IsFolder(path)) return std::string();
  WEFT_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  if (!IsGzip(bytes)) return bytes;
  return Annotate(Gunzip(bytes, ReadLimit()), path);
}

}  // namespace

absl::StatusOr<Images> ReadImages(const std::string& path, const std::string& labels, const ImageProcessor& processor,
                                  absl::Span<const std::string> classes) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadBytes(path));
  if (IsIdx(file)) return ReadIdx(path, file, labels);
  if (!labels.empty()) return InvalidArgument(path, ": it is not an IDX file; only IDX has labels in a separate file");
  if (IsListed(path, file)) return ReadListed(path, processor, /*labelled=*/true, classes);
  if (!IsPicture(file)) return ReadCsv(path, file);
  return InvalidArgument(path,
                         ": a picture without a label; wanted a folder with a folder of pictures for each class, "
                         "or a list with lines of a file, a tab and a class");
}

void KeepFirst(int64_t count, Images* images) {
  if (count >= images->size()) return;
  images->pixels.resize(static_cast<size_t>(count * images->pixels_each()));
  if (!images->labels.empty()) images->labels.resize(static_cast<size_t>(count));
}

absl::StatusOr<Images> ReadUnlabelledImages(const std::string& path, int64_t height, int64_t width,
                                            const ImageProcessor& processor) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadBytes(path));
  Images images = {.path = path, .channels = processor.channels};
  if (IsListed(path, file)) return ReadListed(path, processor, /*labelled=*/false, {});
  if (IsPicture(file)) {
    WEFT_RETURN_IF_ERROR(AddPicture(path, file, processor, &images));
    return images;
  }
  return IsIdx(file) ? ReadIdxPictures(path, file) : ReadCsv(path, file, height, width);
}

Images HoldOut(Images* images, int64_t n) {
  Images kept = {images->path, images->height, images->width, /*pixels=*/{}, /*labels=*/{}, images->channels};
  kept.classes = images->classes;
  kept.processed = images->processed;
  Images taken = kept;
  for (int64_t i = 0; i < images->size(); ++i) {
    Images& to = i % n == n - 1 ? taken : kept;
    const absl::Span<const float> pixels = (*images)[i];
    to.pixels.insert(to.pixels.end(), pixels.begin(), pixels.end());
    if (!images->labels.empty()) to.labels.push_back(images->labels[static_cast<size_t>(i)]);
  }
  *images = std::move(kept);
  return taken;
}

absl::Status WritePng(const std::string& path, const GreyPicture& picture) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_GRAY;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = bytes.size();
  const int written = png_image_write_to_memory(&image, bytes.data(), &size, /*convert_to_8_bit=*/0,
                                                picture.pixels.data(), /*row_stride=*/0, /*colormap=*/nullptr);
  if (written == 0)
    return InvalidArgument(path, ": ", picture.height, " x ", picture.width, " pixels: ", image.message);
  bytes.resize(size);
  return WriteFile(path, {bytes});
}

}  // namespace weft
