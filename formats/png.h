// WritePng writes a grey picture as a PNG file, which every browser shows.
//
//   GreyPicture picture(/*height=*/28, /*width=*/28);
//   picture.at(0, 3) = 255;
//   WEFT_RETURN_IF_ERROR(WritePng("digit.png", picture));
#ifndef WEFT_FORMATS_PNG_H_
#define WEFT_FORMATS_PNG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace weft {

struct GreyPicture {
  GreyPicture(int64_t height, int64_t width, uint8_t grey = 0)
      : height(height), width(width), pixels(static_cast<size_t>(height * width), grey) {}

  uint8_t& at(int64_t y, int64_t x) { return pixels[static_cast<size_t>(y * width + x)]; }

  int64_t height, width;
  std::vector<uint8_t> pixels;  // [height, width], from 0, black, to 255, white
};

// Writes `picture` to the file `path`, which it replaces.
absl::Status WritePng(const std::string& path, const GreyPicture& picture);

}  // namespace weft

#endif  // WEFT_FORMATS_PNG_H_
