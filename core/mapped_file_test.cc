#include "weft/core/mapped_file.h"

#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/file.h"

namespace weft {
namespace {

std::string Path(const std::string& name) { return ::testing::TempDir() + "/" + name; }

// Returns the process's resident bytes that are mapped from files, from /proc/self/status.
size_t ResidentFileBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == "RssFile:" && status >> kilobytes) return kilobytes << 10;
  }
  ADD_FAILURE() << "/proc/self/status has no RssFile";
  return 0;
}

TEST(MappedFileTest, HasTheBytesOfTheFile) {
  const std::string path = Path("mapped");
  ASSERT_TRUE(WriteFile(path, {std::string(100'000, 'a'), "b"}).ok());
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->bytes(), std::string(100'000, 'a') + "b");
  ASSERT_TRUE(WriteFile(path, {"another"}).ok());
  const MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.bytes().size(), 100'001) << "the mapping keeps the replaced file";
  EXPECT_EQ(moved.bytes().back(), 'b');
}

TEST(MappedFileTest, ReleasedPagesAreNotResidentAndStayReadable) {
  constexpr size_t kSize = size_t{64} << 20;
  const std::string path = Path("large");
  ASSERT_TRUE(WriteFile(path, {std::string(kSize, 'x')}).ok());
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto count = [&](bool release) {
    size_t x = 0;
    for (size_t begin = 0; begin < kSize; begin += 4096) {
      x += file->bytes()[begin] == 'x';
      if (release) file->Release(begin, 1);
    }
    return x;
  };
  const size_t before = ResidentFileBytes();
  EXPECT_EQ(count(/*release=*/true), kSize / 4096);
  EXPECT_LT(ResidentFileBytes(), before + (size_t{1} << 20));
  EXPECT_EQ(count(/*release=*/false), kSize / 4096);
  EXPECT_GT(ResidentFileBytes(), before + kSize / 2);
  file->Release(0, kSize);
  EXPECT_LT(ResidentFileBytes(), before + (size_t{1} << 20));
  EXPECT_EQ(file->bytes()[kSize - 1], 'x');
}

TEST(MappedFileTest, NamesTheFileThatCannotBeMapped) {
  EXPECT_EQ(MappedFile::Open(Path("missing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MappedFile::Open(::testing::TempDir()).status().message(), ::testing::HasSubstr("it is a folder"));
  EXPECT_THAT(MappedFile::Open("/dev/zero").status().message(), ::testing::HasSubstr("/dev/zero: it is not a regular"));
  ASSERT_TRUE(WriteFile(Path("empty"), {}).ok());
  const absl::StatusOr<MappedFile> empty = MappedFile::Open(Path("empty"));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->bytes(), "");
  empty->Release(0, 0);
}

}  // namespace
}  // namespace weft
