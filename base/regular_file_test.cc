#include "weft/base/regular_file.h"

#include <unistd.h>

#include <string>
#include <utility>

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

std::string ReadBytes(const RandomAccessFile& file, int64_t begin, size_t size) {
  std::string bytes(size, '?');
  const absl::Status status = file.Read(begin, size, bytes.data());
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

TEST(RandomAccessFileTest, ReadsAnyRange) {
  const std::string path = Path("ranges"), contents = std::string(100'000, 'a') + "bcd";
  ASSERT_TRUE(WriteFile(path, {contents}).ok());
  absl::StatusOr<RandomAccessFile> file = RandomAccessFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 100'003);
  EXPECT_EQ(ReadBytes(*file, 0, 100'003), contents);
  EXPECT_EQ(ReadBytes(*file, 99'999, 3), "abc");
  EXPECT_EQ(ReadBytes(*file, 100'003, 0), "");
  ASSERT_TRUE(WriteFile(path, {"another"}).ok());
  const RandomAccessFile moved = *std::move(file);
  EXPECT_EQ(ReadBytes(moved, 100'000, 3), "bcd") << "an open file stays when another takes its name";
}

TEST(RandomAccessFileTest, NamesAFileThatBecameShorter) {
  const std::string path = Path("shorter");
  ASSERT_TRUE(WriteFile(path, {"abcdef"}).ok());
  const absl::StatusOr<RandomAccessFile> file = RandomAccessFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(truncate(path.c_str(), 4), 0);
  char bytes[6];
  const absl::Status status = file->Read(1, 5, bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(path + " ends at byte 4; it had 6 when it was opened"));
}

TEST(RandomAccessFileTest, NamesAFileThatCannotBeOpened) {
  EXPECT_EQ(RandomAccessFile::Open(Path("missing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(RandomAccessFile::Open(::testing::TempDir()).status().message(), HasSubstr("it is a folder"));
  EXPECT_THAT(RandomAccessFile::Open("/dev/zero").status().message(), HasSubstr("/dev/zero: it is not a regular"));
}

}  // namespace
}  // namespace weft
