// libpng decodes PNG files, and TurboJPEG JPEG files. Pictures are resized along one axis after the other, with weights
// in fixed point, as in Pillow.
#include "weft/formats/image_processor.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/run_folder.h"

namespace weft {

// A filter of Pillow's Image.resize.
struct Resampling {
  int64_t number;  // as in preprocessor_config.json
  double support;  // the weight is 0 at this distance and beyond
  double (*weight)(double distance);
};

namespace {

constexpr absl::string_view kPng("\x89PNG\r\n\x1a\n", 8), kJpeg("\xff\xd8\xff", 3), kExif("Exif\0\0", 6);

// Returns InvalidArgument for a picture of too many pixels. `bytes`: size of its file.
absl::Status CheckArea(const std::string& path, int64_t height, int64_t width, size_t bytes) {
  // PNG's compression makes at most 1032 bytes of one, and a byte has at most 8 pixels. JPEG has fewer.
  const int64_t most = std::min<int64_t>(178'956'970, static_cast<int64_t>(bytes) * 8 * 1032);
  if (height > 0 && width > 0 && height <= most / width) return absl::OkStatus();
  return InvalidArgument(path, ": ", height, " x ", width, " pixels; wanted 1 to ", most);
}

// Returns the whole number in the `size` bytes at `at`, or 0 if they end beyond `bytes`.
size_t Number(absl::string_view bytes, size_t at, size_t size, bool little = false) {
  size_t number = 0;
  for (size_t i = 0; i < size && at + size <= bytes.size(); ++i) {
    number = number << 8 | static_cast<uint8_t>(bytes[little ? at + size - 1 - i : at + i]);
  }
  return number;
}

// Returns the tag Orientation of `exif`, a TIFF header and its tags, or else that of XMP data in `file`, or 0.
size_t Orientation(absl::string_view exif, absl::string_view file) {
  constexpr size_t kOrientation = 0x112, kLong = 4, kTagSize = 12;
  const bool little = absl::StartsWith(exif, "II");
  const size_t first = Number(exif, 4, 4, little) + 2, count = Number(exif, first - 2, 2, little);
  for (size_t at = first; at < first + kTagSize * count && at < exif.size(); at += kTagSize) {
    if (Number(exif, at, 2, little) != kOrientation) continue;
    return Number(exif, at + 8, Number(exif, at + 2, 2, little) == kLong ? 4 : 2, little);
  }
  for (const absl::string_view before : {"tiff:Orientation=\"", "tiff:Orientation>"}) {
    const size_t at = file.find(before);
    if (at != file.npos && at + before.size() < file.size()) return static_cast<size_t>(file[at + before.size()] - '0');
  }
  return 0;
}

// Returns the picture turned upright. Orientations 5 to 8 exchange rows and columns.
RgbPicture Turned(RgbPicture picture, size_t orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  const bool swapped = orientation >= 5;
  const bool upside_down = absl::StrContains("3467", absl::StrCat(orientation));
  const bool mirrored = absl::StrContains("2378", absl::StrCat(orientation));
  RgbPicture turned = picture;
  if (swapped) std::swap(turned.height, turned.width);
  for (int64_t i = 0; i < turned.height * turned.width; ++i) {
    int64_t row = i / turned.width, column = i % turned.width;
    if (swapped) std::swap(row, column);
    if (upside_down) row = picture.height - 1 - row;
    if (mirrored) column = picture.width - 1 - column;
    std::copy_n(picture.pixels.begin() + 3 * (row * picture.width + column), 3, turned.pixels.begin() + 3 * i);
  }
  return turned;
}

absl::StatusOr<RgbPicture> DecodePng(const std::string& path, absl::string_view file) {
  // Pillow's pixels depend on these chunks only. libpng would also follow the chunks of colour spaces.
  constexpr absl::string_view kPixelChunks[] = {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"};
  std::string chunks(kPng);
  absl::string_view exif;
  for (size_t at = kPng.size(), size; at + 12 <= file.size(); at += size) {
    size = 12 + Number(file, at, 4);
    const absl::string_view type = file.substr(at + 4, 4), chunk = file.substr(at, size);
    if (absl::c_linear_search(kPixelChunks, type)) chunks.append(chunk.data(), chunk.size());
    if (type == "eXIf") exif = chunk.substr(8);
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> freed(&image, png_image_free);
  const auto fail = [&](absl::string_view what) { return InvalidArgument(path, ": ", what); };
  if (png_image_begin_read_from_memory(&image, chunks.data(), chunks.size()) == 0) return fail(image.message);
  if ((image.format & PNG_FORMAT_FLAG_LINEAR) != 0) return fail("a PNG file of 16 bits a channel; wanted 8 or less");
  WEFT_RETURN_IF_ERROR(CheckArea(path, image.height, image.width, file.size()));
  image.format = PNG_FORMAT_RGBA;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, pixels.data(), /*row_stride=*/0, nullptr) == 0) return fail(image.message);
  const size_t count = pixels.size() / 4;
  for (size_t i = 0; i < count; ++i) std::copy_n(&pixels[4 * i], 3, &pixels[3 * i]);
  pixels.resize(3 * count);
  return Turned({image.height, image.width, std::move(pixels)}, Orientation(exif, file));
}

absl::StatusOr<RgbPicture> DecodeJpeg(const std::string& path, absl::string_view file) {
  const std::unique_ptr<void, int (*)(void*)> decoder(tjInitDecompress(), tjDestroy);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(file.data());
  const auto fail = [&] { return InvalidArgument(path, ": ", tjGetErrorStr2(decoder.get())); };
  int width, height, sampling, colours;
  if (tjDecompressHeader3(decoder.get(), bytes, file.size(), &width, &height, &sampling, &colours) != 0) return fail();
  WEFT_RETURN_IF_ERROR(CheckArea(path, height, width, file.size()));
  std::vector<uint8_t> pixels(3 * static_cast<size_t>(height) * static_cast<size_t>(width));
  if (tjDecompress2(decoder.get(), bytes, file.size(), pixels.data(), width, /*pitch=*/0, height, TJPF_RGB,
                    TJFLAG_LIMITSCANS) != 0) {
    return fail();
  }
  const size_t exif = file.find(kExif);
  return Turned({height, width, std::move(pixels)},
                Orientation(exif == file.npos ? "" : file.substr(exif + kExif.size()), file));
}

double Sinc(double x) { return x == 0 ? 1 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi); }
double Lanczos(double x) { return -3 <= x && x < 3 ? Sinc(x) * Sinc(x / 3) : 0; }
double Bilinear(double x) { return std::max(1 - std::abs(x), 0.0); }
double Bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
double Box(double x) { return -0.5 < x && x <= 0.5 ? 1 : 0; }
double Hamming(double x) { return std::abs(x) < 1 ? Sinc(x) * (0.54 + 0.46 * std::cos(x * std::numbers::pi)) : 0; }

constexpr Resampling kResamplings[] = {
    {1, 3, Lanczos}, {2, 1, Bilinear}, {3, 2, Bicubic}, {4, 0.5, Box}, {5, 1, Hamming}};

// Resizes the middle axis of `pixels` [..., from, inner] to [..., to, inner].
std::vector<uint8_t> ResizeAxis(const std::vector<uint8_t>& pixels, int64_t from, int64_t to, int64_t inner,
                                const Resampling& resampling) {
  constexpr int kBits = 22;  // of the fractions of weights
  const double scale = static_cast<double>(from) / static_cast<double>(to), stretch = std::max(scale, 1.0);
  const double support = resampling.support * stretch;
  const int64_t outer = static_cast<int64_t>(pixels.size()) / (from * inner);
  std::vector<uint8_t> result(static_cast<size_t>(outer * to * inner));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    const int64_t last = std::min(static_cast<int64_t>(center + support + 0.5), from);
    std::vector<double> weights;
    for (int64_t k = first; k < last; ++k) {
      weights.push_back(resampling.weight((static_cast<double>(k) - center + 0.5) * (1 / stretch)));
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int32_t> fixed;
    for (const double weight : weights) fixed.push_back(static_cast<int32_t>(std::round(weight / sum * (1 << kBits))));
    for (int64_t o = 0; o < outer; ++o) {
      const uint8_t* const in = &pixels[static_cast<size_t>((o * from + first) * inner)];
      uint8_t* const out = &result[static_cast<size_t>((o * to + i) * inner)];
      for (int64_t j = 0; j < inner; ++j) {
        int32_t value = 1 << (kBits - 1);
        for (size_t k = 0; k < fixed.size(); ++k) value += fixed[k] * in[static_cast<int64_t>(k) * inner + j];
        out[j] = static_cast<uint8_t>(std::clamp(value >> kBits, 0, 255));
      }
    }
  }
  return result;
}

absl::StatusOr<RgbPicture> Resize(const std::string& path, RgbPicture picture, int64_t height, int64_t width,
                                  const Resampling& resampling) {
  // Pillow 13 begins with the columns if they lose more than twice the pixels that rows lose. Before, it never did.
  const bool columns_first = height < picture.height && picture.height - height > 2 * (picture.width - width);
  for (const bool columns : {columns_first, !columns_first}) {
    int64_t& size = columns ? picture.height : picture.width;
    const int64_t from = std::exchange(size, columns ? height : width);
    if (size == from) continue;
    WEFT_RETURN_IF_ERROR(CheckArea(path, picture.height, picture.width, picture.pixels.max_size() / 8 / 1032));
    picture.pixels = ResizeAxis(picture.pixels, from, size, columns ? 3 * picture.width : 3, resampling);
  }
  return picture;
}

// Hugging Face's classes. true: the class has DeiT's defaults.
constexpr std::pair<const char*, bool> kClasses[] = {{"ViTImageProcessor", false},     {"ViTImageProcessorFast", false},
                                                     {"ViTFeatureExtractor", false},   {"DeiTImageProcessor", true},
                                                     {"DeiTImageProcessorFast", true}, {"DeiTFeatureExtractor", true}};

// Reads a size: a number, [height, width], or an object. A number is the length of both sides if `square`. Otherwise it
// is that of the shorter edge, as shortest_edge is, and *width becomes 0. crop_size has no shortest_edge.
void ReadSize(KeyReader& keys, const char* key, bool square, int64_t* height, int64_t* width) {
  constexpr int64_t kMaxEdge = 65536;
  const Json* const size = keys.Find(key);
  if (size == nullptr) return;
  const auto number = [&](const char* name) { return WholeNumber(size->value(name, Json())); };
  const bool object = size->is_object();
  const bool edge = object ? size->size() == 1 && key == std::string("size") : !size->is_array() && !square;
  std::optional<int64_t> first = WholeNumber(*size), second = first;
  if (size->is_array() && size->size() == 2) first = WholeNumber((*size)[0]), second = WholeNumber((*size)[1]);
  if (object) first = number(edge ? "shortest_edge" : "height"), second = number(edge ? "shortest_edge" : "width");
  if (!first || !second || std::min(*first, *second) < 1 || std::max(*first, *second) > kMaxEdge) {
    return keys.Refuse(key, "numbers from 1 to 65536: height and width, or for size shortest_edge");
  }
  *height = *first;
  *width = edge ? 0 : *second;
}

// Reads a number for all channels, or a list with one for each.
void ReadChannels(KeyReader& keys, const char* key, int64_t channels, std::vector<double>* values) {
  const Json* const json = keys.Find(key);
  if (json == nullptr) return;
  const Json list = json->is_array() ? *json : Json::array({*json});
  const bool fits = !json->is_array() || static_cast<int64_t>(list.size()) == channels;
  if (!fits || !absl::c_all_of(list, [](const Json& each) { return each.is_number(); })) {
    return keys.Refuse(key, absl::StrCat("a number, or one for each of ", channels, " channels"));
  }
  *values = list.get<std::vector<double>>();
}

}  // namespace

bool IsPicture(absl::string_view bytes) { return absl::StartsWith(bytes, kPng) || absl::StartsWith(bytes, kJpeg); }

absl::StatusOr<RgbPicture> ImageProcessor::Read(const std::string& path, absl::string_view bytes) const {
  if (!IsPicture(bytes)) return InvalidArgument(path, ": it is neither a PNG nor a JPEG file");
  WEFT_ASSIGN_OR_RETURN(RgbPicture picture,
                        absl::StartsWith(bytes, kPng) ? DecodePng(path, bytes) : DecodeJpeg(path, bytes));
  if (resampling != nullptr) {
    const int64_t shorter = std::min(picture.height, picture.width);
    const int64_t to_height = width == 0 ? height * picture.height / shorter : height;
    const int64_t to_width = width == 0 ? height * picture.width / shorter : width;
    WEFT_ASSIGN_OR_RETURN(picture, Resize(path, std::move(picture), to_height, to_width, *resampling));
  }
  if (crop_height == 0) return picture;
  const int64_t top = (picture.height - crop_height) / 2, left = (picture.width - crop_width) / 2;
  if (picture.height < crop_height || picture.width < crop_width) {
    return InvalidArgument(path, ": ", picture.height, " x ", picture.width, " pixels are less than crop_size, ",
                           crop_height, " x ", crop_width);
  }
  RgbPicture middle = {crop_height, crop_width, {}};
  for (int64_t y = top; y < top + crop_height; ++y) {
    const auto row = picture.pixels.begin() + 3 * (y * picture.width + left);
    middle.pixels.insert(middle.pixels.end(), row, row + 3 * crop_width);
  }
  return middle;
}

absl::StatusOr<ImageProcessor> ReadImageProcessor(const std::string& model, const VitConfig& config) {
  const std::string path = ParseRunPath(model).folder + "/preprocessor_config.json";
  ImageProcessor result = {.channels = config.channels};
  const auto file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status()) && !IsRun(model)) return result;
  WEFT_RETURN_IF_ERROR(file.status());
  result.file = file->dump(2) + "\n";
  KeyReader keys(*file);
  bool deit = config.distillation != Distillation::kNone;
  keys.Choice("feature_extractor_type", Choices<bool>(kClasses), deit);  // before transformers 4.25
  keys.Choice("image_processor_type", Choices<bool>(kClasses), deit);
  const auto flag = [&](const char* key, bool usual) {
    bool value = usual && !keys.IsNull(key);
    keys.Field(key, value);
    return value;
  };
  const bool resize = flag("do_resize", true), crop = flag("do_center_crop", deit);
  const bool rescale = flag("do_rescale", true), normalize = flag("do_normalize", true);
  const bool square = flag("default_to_square", true);
  if (resize) keys.NotNull({"size", "resample"}, "a value");
  if (crop) keys.NotNull({"crop_size"}, "a value");
  if (rescale) keys.NotNull({"rescale_factor"}, "a value");
  if (normalize) keys.NotNull({"image_mean", "image_std"}, "a value");
  int64_t resample = deit ? 3 : 2;
  result.height = result.width = deit ? 256 : 224;
  result.crop_height = result.crop_width = 224;
  keys.Field("resample", resample);
  keys.Field("rescale_factor", result.rescale);
  ReadSize(keys, "size", square, &result.height, &result.width);
  ReadSize(keys, "crop_size", /*square=*/true, &result.crop_height, &result.crop_width);
  ReadChannels(keys, "image_mean", config.channels, &result.mean);
  ReadChannels(keys, "image_std", config.channels, &result.deviation);
  if (absl::c_linear_search(result.deviation, 0)) keys.Refuse("image_std", "other numbers than 0");
  const auto* const found = absl::c_find_if(kResamplings, [&](const auto& each) { return each.number == resample; });
  if (resize && found == std::end(kResamplings)) keys.Refuse("resample", "1 (Lanczos) to 5 (Hamming)");
  if (resize) result.resampling = found;
  if (!crop) result.crop_height = result.crop_width = 0;
  if (!rescale) result.rescale = 1;
  if (!normalize) result.mean = {0}, result.deviation = {1};
  keys.Only("do_pad", false);
  keys.Only("data_format", "channels_first");
  // Pictures are always in colour, as the pipelines of transformers read them. The other keys change no results.
  keys.Harmless({"do_convert_rgb", "pad_size", "processor_class", "_valid_processor_keys", "return_tensors", "device",
                 "disable_grouping"});
  WEFT_RETURN_IF_ERROR(Annotate(keys.Finish(), path));
  return result;
}

}  // namespace weft
