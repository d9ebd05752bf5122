// Reads any bytes as a PNG or JPEG file. The first byte selects whether the picture is an input in colour or in grey.
#include <png.h>
#include <turbojpeg.h>

#include <cmath>

#include "weft/base/status.h"
#include "weft/formats/image_processor.h"
#include "weft/tests/fuzz/files/target.h"

namespace weft {
namespace {

ImageProcessor Processor(uint8_t kind) {
  ImageProcessor processor;
  processor.channels = kind % 2 == 0 ? 3 : 1;
  return processor;
}

// Returns 5 rows of 7 pixels with the given number of bytes each.
std::string Pixels(size_t channels) {
  std::string pixels(5 * 7 * channels, '\0');
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * 37);
  return pixels;
}

std::string Png(uint32_t format) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = 7;
  image.height = 5;
  image.format = format;
  const std::string pixels = Pixels(PNG_IMAGE_PIXEL_SIZE(format));
  png_alloc_size_t size = 0;
  WEFT_CHECK(png_image_write_get_memory_size(image, size, 0, pixels.data(), 0, nullptr));
  std::string file(size, '\0');
  WEFT_CHECK(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr));
  file.resize(size);
  return file;
}

std::string Jpeg(int flags) {
  const std::string pixels = Pixels(3);
  const tjhandle compressor = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(runtime/int): TurboJPEG's type
  WEFT_CHECK(tjCompress2(compressor, reinterpret_cast<const unsigned char*>(pixels.data()), 7, 0, 5, TJPF_RGB, &bytes,
                         &size, TJSAMP_420, 80, flags) == 0);
  const std::string file(reinterpret_cast<const char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(compressor);
  return file;
}

}  // namespace

bool accepted = false;

std::vector<std::string> Seeds() {
  // The Exif data of a picture that is turned by 90 degrees.
  const std::string exif(
      "\xff\xe1\x00\x22"
      "Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
      36);
  const std::string jpeg = Jpeg(0);
  std::vector<std::string> seeds;
  for (const std::string& file : {Png(PNG_FORMAT_RGB), Png(PNG_FORMAT_GRAY), Png(PNG_FORMAT_RGBA), jpeg,
                                  Jpeg(TJFLAG_PROGRESSIVE), jpeg.substr(0, 2) + exif + jpeg.substr(2)}) {
    for (const char kind : {'\0', '\1'}) seeds.push_back(std::string(1, kind).append(file));
  }
  return seeds;
}

}  // namespace weft

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::accepted = false;
  if (size == 0) return 0;
  const weft::ImageProcessor processor = weft::Processor(data[0]);
  const auto picture = processor.Read("picture", {reinterpret_cast<const char*>(data) + 1, size - 1});
  weft::accepted = picture.ok();
  if (!picture.ok()) return 0;
  const size_t pixels = static_cast<size_t>(picture->height * picture->width);
  WEFT_CHECK(picture->pixels.size() == pixels * 3);
  for (size_t i = 0; i < picture->pixels.size(); ++i) WEFT_CHECK(std::isfinite(processor(picture->pixels[i], i)));
  return 0;
}
