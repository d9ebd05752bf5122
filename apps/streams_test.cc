#include "weft/apps/streams.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"

namespace weft {
namespace {

TEST(PrintingTest, SpeaksOfModelsThatAreLargerThanTheMemory) {
  const std::string folder = testing::TempDir() + "/huge", file = folder + "/model.safetensors";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(MemoryNote(folder, 0), "");  // there are no weights
  ASSERT_TRUE(WriteFile(file, {std::string(1000, 'x')}).ok());
  EXPECT_EQ(MemoryNote(folder, 1000), "");
  for (const std::string& model : {folder, file}) {
    EXPECT_THAT(MemoryNote(model, 999), testing::AllOf(testing::HasSubstr(file), testing::HasSubstr("slow")));
  }
}

}  // namespace
}  // namespace weft
