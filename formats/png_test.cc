// Reads with libpng's reader what WritePng wrote.
#include <png.h>

#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/formats/images.h"

namespace weft {
namespace {

TEST(PngTest, APictureIsReadAsItWasWritten) {
  GreyPicture picture(/*height=*/3, /*width=*/5, /*grey=*/200);
  for (int64_t y = 0; y < 3; ++y) picture.at(y, y + 1) = static_cast<uint8_t>(40 * y);
  const std::string path = testing::TempDir() + "/picture.png";
  const absl::Status written = WritePng(path, picture);
  ASSERT_TRUE(written.ok()) << written;
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_file(&image, path.c_str()), 0) << image.message;
  EXPECT_EQ(image.height, 3u);
  EXPECT_EQ(image.width, 5u);
  image.format = PNG_FORMAT_GRAY;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
  ASSERT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr), 0) << image.message;
  EXPECT_EQ(pixels, picture.pixels);
}

TEST(PngTest, APictureWithoutPixelsIsAnError) {
  const absl::Status status = WritePng(testing::TempDir() + "/empty.png", GreyPicture(0, 5));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace weft
