// These tests decode the file with code of their own: a CRC-32C computed bit by bit, and protobuf.
// tests/tensorboard reads it with TensorBoard.
#include "weft/train/run/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/core/tensor.h"
#include "weft/train/run/event.pb.h"

namespace weft {
namespace {

using testing::HasSubstr;

// The polynomial of CRC-32C, reflected: RFC 3720, section 12.1.
uint32_t Crc(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

template <class T>
T ValueAt(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Decodes a file and expects all checksums to be right.
std::vector<event::Event> Decode(const std::string& bytes) {
  std::vector<event::Event> events;
  for (size_t i = 0; i < bytes.size();) {
    const auto length = ValueAt<uint64_t>(bytes, i);
    EXPECT_EQ(ValueAt<uint32_t>(bytes, i + 8), Masked(Crc(bytes.substr(i, 8))));
    const std::string event = bytes.substr(i + 12, length);
    EXPECT_EQ(event.size(), length);
    EXPECT_EQ(ValueAt<uint32_t>(bytes, i + 12 + length), Masked(Crc(event)));
    EXPECT_TRUE(events.emplace_back().ParseFromString(event));
    i += 12 + length + 4;
  }
  return events;
}

class EventFileTest : public testing::Test {
 protected:
  EventFileTest()
      : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()),
        path_(folder_ + "/" + kEventFile) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  EventFile Open(int64_t step) const {
    absl::StatusOr<EventFile> file = EventFile::Open(folder_, step);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  // Appends the scalar "loss" of the steps `first` to `last`, with wall times that follow from the step.
  static void AppendSteps(EventFile* file, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      const auto value = static_cast<double>(step);
      EXPECT_TRUE(file->AppendScalars(step, 1000 + value, {{"loss", value}}).ok());
    }
  }
  std::string Read() const { return *ReadFile(path_); }
  // Returns the file without its first event, which has the time of Open.
  std::string ReadEvents() const { return Read().substr(VersionBytes()); }
  size_t VersionBytes() const { return 16 + static_cast<size_t>(ValueAt<uint64_t>(Read(), 0)); }
  void Write(const std::string& bytes) const { EXPECT_TRUE(WriteFile(path_, {bytes}).ok()); }

  const std::string folder_, path_;
};

TEST_F(EventFileTest, TheTestsOwnChecksumIsTheStandards) {
  EXPECT_EQ(Crc("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, appendix B.4
  EXPECT_EQ(Crc(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST_F(EventFileTest, HasScalarsHistogramsAndTexts) {
  EventFile file = Open(-1);
  EXPECT_EQ(file.warning(), "");
  ASSERT_TRUE(file.AppendScalars(1, 12.5, {{"loss/train", 0.75}, {"learning_rate", 1e-3}}).ok());
  std::vector<float> values = {0, 1, 2, 30, NAN, INFINITY};
  const Tensor tensor = {{kF32, {6}}, reinterpret_cast<std::byte*>(values.data())};
  ASSERT_TRUE(file.AppendHistogram(2, 13, "weights", tensor).ok());
  ASSERT_TRUE(file.AppendText(2, 14, "sample", "na\u00efve").ok());
  ASSERT_TRUE(file.Sync().ok());

  const std::vector<event::Event> events = Decode(Read());
  ASSERT_EQ(events.size(), 4);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].step(), 1);
  EXPECT_EQ(events[1].wall_time(), 12.5);
  ASSERT_EQ(events[1].summary().value_size(), 2);
  EXPECT_EQ(events[1].summary().value(0).tag(), "loss/train");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 0.75f);
  EXPECT_EQ(events[1].summary().value(1).simple_value(), 1e-3f);

  ASSERT_EQ(events[2].summary().value_size(), 1);
  EXPECT_EQ(events[2].summary().value(0).metadata().plugin_data().plugin_name(), "histograms");
  const std::string& content = events[2].summary().value(0).tensor().tensor_content();
  ASSERT_EQ(content.size(), 30 * 3 * sizeof(double));
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(ValueAt<double>(content, (3 * i) * sizeof(double)), i);
    EXPECT_EQ(ValueAt<double>(content, (3 * i + 1) * sizeof(double)), i + 1);
    EXPECT_EQ(ValueAt<double>(content, (3 * i + 2) * sizeof(double)), i <= 2 || i == 29);
  }
  EXPECT_EQ(events[3].summary().value(0).metadata().plugin_data().plugin_name(), "text");
  EXPECT_EQ(events[3].summary().value(0).tensor().string_val(0), "na\u00efve");
}

TEST_F(EventFileTest, AResumedFileEqualsAnUndisturbedOne) {
  {
    EventFile file = Open(-1);
    AppendSteps(&file, 1, 9);
  }
  const std::string whole = Read();
  for (const int64_t step : {0, 1, 5, 9, 20}) {
    EventFile file = Open(step);
    EXPECT_EQ(Decode(Read()).size(), 1 + std::min<int64_t>(step, 9));
    AppendSteps(&file, step + 1, 9);
    EXPECT_EQ(Read(), whole) << step;
    EXPECT_EQ(file.warning(), "");
  }
  EventFile file = Open(-1);
  EXPECT_EQ(Decode(Read()).size(), 1);
}

TEST_F(EventFileTest, CutsOffAnIncompleteRecordOfAnyLength) {
  {
    EventFile file = Open(-1);
    AppendSteps(&file, 1, 1);
  }
  const std::string one = Read();
  {
    EventFile file = Open(1);
    AppendSteps(&file, 2, 2);
  }
  const std::string two = Read();
  for (size_t size = 0; size <= two.size(); ++size) {
    Write(two.substr(0, size));
    const EventFile file = Open(5);
    EXPECT_EQ(file.warning(), "") << size;
    if (size >= VersionBytes()) {
      EXPECT_EQ(Decode(Read()).size(), 1 + (size >= one.size()) + (size >= two.size())) << size;
    }
  }
}

TEST_F(EventFileTest, FindsEveryFlippedBit) {
  {
    EventFile file = Open(-1);
    AppendSteps(&file, 1, 3);
  }
  const std::string right = Read();
  for (size_t byte = 0; byte < right.size(); ++byte) {
    std::string wrong = right;
    wrong[byte] ^= static_cast<char>(1 << (byte % 8));
    Write(wrong);
    const EventFile file = Open(3);
    EXPECT_THAT(file.warning(), HasSubstr("is damaged; the last ")) << byte;
    EXPECT_LT(Decode(Read()).size(), 4) << byte;
  }
}

TEST_F(EventFileTest, ATagIsThereOnceForAStep) {
  {
    EventFile file = Open(-1);
    AppendSteps(&file, 1, 2);
    ASSERT_TRUE(file.AppendText(2, 7, "sample", "a").ok());
  }
  const std::string whole = Read();
  EventFile file = Open(2);
  ASSERT_TRUE(file.AppendText(2, 8, "sample", "a").ok());
  AppendSteps(&file, 2, 2);
  EXPECT_EQ(Read(), whole);
  AppendSteps(&file, 3, 3);
  ASSERT_TRUE(file.AppendText(3, 9, "sample", "a").ok());
  EXPECT_EQ(Decode(Read()).size(), 6);
}

TEST_F(EventFileTest, RefusesWhatTensorBoardCannotRead) {
  EventFile file = Open(-1);
  AppendSteps(&file, 5, 5);
  EXPECT_THAT(file.AppendScalars(4, 0, {{"loss", 1}}).ToString(), HasSubstr("step 4 cannot follow one of step 5"));
  EXPECT_THAT(file.AppendScalars(6, 0, {{"\xff", 1}}).ToString(), HasSubstr("the tag of an event: not UTF-8"));
  EXPECT_THAT(file.AppendText(6, 0, "sample", "\xff").ToString(), HasSubstr("the text 'sample': not UTF-8"));
  std::vector<int32_t> ids = {1};
  EXPECT_THAT(file.AppendHistogram(6, 0, "ids", {{kI32, {1}}, reinterpret_cast<std::byte*>(ids.data())}).ToString(),
              HasSubstr("'ids' is i32[1]"));
  EXPECT_THAT(EventFile::Open(folder_ + "/missing", -1).status().ToString(), HasSubstr("cannot open"));
}

}  // namespace
}  // namespace weft
