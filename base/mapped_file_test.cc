#include "weft/base/mapped_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Path(const std::string& name) { return ::testing::TempDir() + "/" + name; }

TEST(MappedFileTest, ShowsTheBytesOfTheFile) {
  ASSERT_TRUE(WriteFile(Path("some"), {"two ", "parts"}).ok());
  ASSERT_TRUE(WriteFile(Path("none"), {}).ok());
  EXPECT_EQ(MappedFile::Open(Path("some"))->bytes(), "two parts");
  EXPECT_EQ(MappedFile::Open(Path("none"))->bytes(), "");
}

TEST(MappedFileTest, AWriteStaysInTheProcess) {
  ASSERT_TRUE(WriteFile(Path("written"), {"before"}).ok());
  const absl::StatusOr<MappedFile> file = MappedFile::Open(Path("written"));
  file->data()[0] = std::byte{'B'};
  EXPECT_EQ(file->bytes(), "Before");
  EXPECT_EQ(*ReadFile(Path("written")), "before");
}

TEST(MappedFileTest, AReplacedFileKeepsItsBytes) {
  ASSERT_TRUE(WriteFile(Path("replaced"), {"old"}).ok());
  const absl::StatusOr<MappedFile> file = MappedFile::Open(Path("replaced"));
  ASSERT_TRUE(WriteFile(Path("replaced"), {"newer"}).ok());
  EXPECT_EQ(file->bytes(), "old");
}

TEST(MappedFileTest, ErrorsNameTheFile) {
  EXPECT_EQ(MappedFile::Open(Path("missing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(MappedFile::Open(::testing::TempDir()).status().message()), HasSubstr("it is a folder"));
  EXPECT_THAT(std::string(MappedFile::Open("/dev/null").status().message()),
              HasSubstr("/dev/null: it is not a regular"));
}

}  // namespace
}  // namespace weft
