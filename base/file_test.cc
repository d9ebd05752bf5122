#include "weft/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Path(const std::string& name) { return ::testing::TempDir() + "/" + name; }

TEST(FileTest, WritesPartsAndReadsThem) {
  const std::string path = Path("parts");
  ASSERT_TRUE(WriteFile(path, {"one", "", absl::string_view("\0two", 4)}).ok());
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, std::string("one\0two", 7));
}

TEST(FileTest, WriteReplaces) {
  const std::string path = Path("replaced");
  ASSERT_TRUE(WriteFile(path, {std::string(100'000, 'a')}).ok());
  ASSERT_TRUE(WriteFile(path, {"b"}).ok());
  EXPECT_EQ(*ReadFile(path), "b");
}

TEST(FileTest, FailsWhereAskedToIfSomethingIsThere) {
  const std::string path = Path("taken"), link = Path("dangling");
  ASSERT_TRUE(WriteFile(path, {"a"}, IfThere::kFail).ok());
  EXPECT_EQ(WriteFile(path, {"b"}, IfThere::kFail).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadFile(path), "a");
  ASSERT_EQ(symlink("nowhere", link.c_str()), 0);
  EXPECT_EQ(WriteFile(link, {"b"}, IfThere::kFail).code(), absl::StatusCode::kAlreadyExists);
}

TEST(FileTest, DoesNotWriteThroughALinkInTheTemporaryFilesPlace) {
  const std::string path = Path("out"), victim = Path("victim");
  const std::string temporary = path + "." + std::to_string(getpid()) + kTemporarySuffix;
  ASSERT_TRUE(WriteFile(victim, {"kept"}).ok());
  ASSERT_EQ(symlink(victim.c_str(), temporary.c_str()), 0);
  EXPECT_TRUE(WriteFile(path, {"new"}).ok());
  EXPECT_EQ(*ReadFile(victim), "kept");
  EXPECT_EQ(*ReadFile(path), "new");
}

TEST(FileTest, SaysBeforehandWhetherItCanWrite) {
  const std::string path = Path("later");
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_EQ(ReadFile(path).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(CheckWritable(Path("no/such/folder")).message()), HasSubstr("no/such/folder"));
}

TEST(FileTest, ReadsWhatHasNoSize) {
  const absl::StatusOr<std::string> bytes = ReadFile("/proc/self/maps");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_THAT(*bytes, HasSubstr("r-x"));
}

TEST(FileTest, ErrorsNameTheFile) {
  const absl::Status missing = ReadFile(Path("missing")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("missing"));

  const absl::Status folder = ReadFile(::testing::TempDir()).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(folder.message()), HasSubstr("it is a folder"));

  const absl::Status nowhere = WriteFile(Path("no/such/folder"), {"x"});
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nowhere.message()), HasSubstr("no/such/folder"));
}

TEST(FileTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const std::string folder = Path("kept"), path = folder + "/target";
  ASSERT_EQ(mkdir(folder.c_str(), 0777), 0);
  ASSERT_EQ(mkdir(path.c_str(), 0777), 0);  // a folder can't be replaced by a file
  EXPECT_FALSE(WriteFile(path, {"x"}).ok());
  EXPECT_EQ(rmdir(path.c_str()), 0);
  EXPECT_EQ(rmdir(folder.c_str()), 0);  // fails if the folder is not empty
}

TEST(FileTest, EndlessFilesHaveABound) {
  const size_t before = ReadLimit();
  SetReadLimit(1'000'000);
  EXPECT_EQ(
      ReadFile("/dev/zero").status().message(),
      "/dev/zero: it has more than 1000000 bytes, which is the limit max-bytes for files that do not tell their size");
  const std::string path = Path("large"), large(2'000'000, 'x');  // a file tells its size
  ASSERT_TRUE(WriteFile(path, {large}).ok());
  EXPECT_EQ(ReadFile(path)->size(), large.size());
  EXPECT_TRUE(ReadFile("/proc/self/maps").ok());
  SetReadLimit(before);
}

TEST(FileTest, AFileLargerThanTheMemoryIsAnError) {
  const std::string path = Path("sparse");
  ASSERT_TRUE(WriteFile(path, {}).ok());
  std::error_code error;
  std::filesystem::resize_file(path, uint64_t{1} << 43, error);  // 8 TiB, none of them on the disk
  if (error) GTEST_SKIP() << "the file system refuses files of 8 TiB";
  EXPECT_THAT(std::string(ReadFile(path).status().message()), HasSubstr("more than the machine's memory"));
  std::filesystem::remove(path);
}

// IsLocked of another process, such as weft report --follow, holds a shared lock for a moment.
TEST(LockFolderTest, WaitsWhileAnotherProcessChecksTheLock) {
  const std::string folder = Path("checked");
  ASSERT_EQ(mkdir(folder.c_str(), 0777), 0);
  Descriptor check(open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(flock(check.get(), LOCK_SH), 0);
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    check.Close();
  });
  const absl::StatusOr<Descriptor> lock = LockFolder(folder);
  end.join();
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(IsLocked(folder));
  EXPECT_EQ(LockFolder(folder).status().message(), folder + " is in use by another process");
}

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
