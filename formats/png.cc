// The library libpng compresses the picture in memory. Then WriteFile replaces the file at once.
#include "weft/formats/png.h"

#include <png.h>

#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {

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
