#include <zlib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/text/data/gzip.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Path(const std::string& name) { return testing::TempDir() + "/" + name; }

// Returns the text of the file, read in parts of at most `part` bytes.
absl::StatusOr<std::string> ReadInParts(const std::string& path, size_t part) {
  absl::StatusOr<FileStream> stream = FileStream::Open(path);
  if (!stream.ok()) return stream.status();
  std::string text;
  while (true) {
    const absl::StatusOr<size_t> bytes = stream->Append(part, &text);
    if (!bytes.ok()) return bytes.status();
    if (*bytes == 0) return text;
    EXPECT_LE(*bytes, part);
  }
}

std::string LongText() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * i) + "\n";
  return text;
}

void WriteGzip(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

TEST(FileStreamTest, ReadsPlainAndCompressedFilesInParts) {
  const std::string text = LongText();
  ASSERT_TRUE(WriteFile(Path("plain"), {text}).ok());
  WriteGzip(Path("compressed"), text);
  for (const size_t part : {size_t{1} << 30, size_t{1000}, size_t{7}}) {
    EXPECT_EQ(*ReadInParts(Path("plain"), part), text);
    EXPECT_EQ(*ReadInParts(Path("compressed"), part), text);
  }
  ASSERT_TRUE(WriteFile(Path("empty"), {}).ok());
  EXPECT_EQ(*ReadInParts(Path("empty"), 10), "");
}

TEST(FileStreamTest, NamesAFileThatCannotBeRead) {
  WriteGzip(Path("whole"), LongText());
  const std::string whole = *ReadFile(Path("whole"));
  ASSERT_TRUE(WriteFile(Path("cut"), {whole.substr(0, whole.size() / 2)}).ok());
  EXPECT_THAT(ReadInParts(Path("cut"), 1000).status().message(), HasSubstr("cut: can't decompress it: it is cut off"));
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;  // of the CRC
  ASSERT_TRUE(WriteFile(Path("damaged"), {damaged}).ok());
  EXPECT_THAT(ReadInParts(Path("damaged"), 1000).status().message(), HasSubstr("damaged: can't decompress it: "));
  EXPECT_EQ(FileStream::Open(Path("missing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(FileStream::Open(testing::TempDir()).status().message(), HasSubstr("it is a folder"));
}

}  // namespace
}  // namespace weft
