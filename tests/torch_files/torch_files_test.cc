// Reads the files of torch.save that draw.py wrote, and compares them with the same tensors in safetensors. Files that
// are no dictionaries of tensors are refused, and nothing that they name is executed.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kFolder[] = "tests/torch_files/";

// Returns types and bytes of all tensors, by name.
std::map<std::string, std::string> Tensors(const absl::StatusOr<Weights>& weights) {
  std::map<std::string, std::string> tensors;
  EXPECT_TRUE(weights.ok()) << weights.status();
  if (!weights.ok()) return tensors;
  for (const auto& [name, tensor] : weights->tensors()) {
    tensors[name] = absl::StrCat(ToString(tensor.type), " ",
                                 absl::string_view(reinterpret_cast<const char*>(tensor.data), tensor.type.bytes()));
  }
  return tensors;
}

absl::StatusOr<Weights> Read(const std::string& name) { return Weights::ReadStored(kFolder + name); }
std::string Error(const std::string& name) { return std::string(Read(name).status().message()); }

TEST(TorchFilesTest, TensorsAreThoseOfSafetensors) {
  const auto wanted = Tensors(Read("kinds.safetensors"));
  EXPECT_EQ(wanted.size(), 19u);
  for (const char* const name : {"kinds.bin", "state_dict.pt", "model.pt"}) {
    EXPECT_TRUE(Tensors(Read(name)) == wanted) << name;
  }
}

TEST(TorchFilesTest, AFolderHasOneFileOrAnIndex) {
  const auto wanted = Tensors(Read("kinds.safetensors"));
  EXPECT_TRUE(Tensors(Weights::ReadStored("tests/torch_files")) == wanted);
  const std::string folder = ::testing::TempDir() + "/torch_files";
  fs::create_directories(folder);
  fs::copy_file(std::string(kFolder) + "kinds.bin", folder + "/pytorch_model.bin",
                fs::copy_options::overwrite_existing);
  EXPECT_TRUE(Tensors(Weights::ReadStored(folder)) == wanted);
}

TEST(TorchFilesTest, TensorsThatLieInTheFileAreNotCopied) {
  const absl::StatusOr<Weights> weights = Read("kinds.bin");
  ASSERT_TRUE(weights.ok());
  const std::byte* const table = weights->Find("table")->data;
  EXPECT_EQ(weights->Find("tied")->data, table);
  EXPECT_EQ(weights->Find("rows")->data, table + 2 * 4 * sizeof(float));
  EXPECT_NE(weights->Find("transposed")->data, table);
}

TEST(TorchFilesTest, OtherTypesAreNotRead) {
  const absl::StatusOr<Weights> weights = Read("unread.bin");
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->tensors().size(), 1u);
  EXPECT_THAT(weights->unread(), ElementsAre(Pair("u8", "U8[2,2]"), Pair("u16", "torch.uint16[3]"),
                                             Pair("c64", "C64[2]"), Pair("step", "no tensor")));
}

TEST(TorchFilesTest, NothingIsExecuted) {
  EXPECT_THAT(Error("calls_system.bin"), HasSubstr("calls_system.bin: it is no PyTorch file that is read: its pickle "
                                                   "names 'posix.system', which no tensor needs; nothing is called"));
  EXPECT_THAT(Error("calls_eval.bin"), HasSubstr("its pickle names '__builtin__.eval'"));
  EXPECT_THAT(Error("module.bin"), HasSubstr("its pickle names 'torch.nn.modules.linear.Linear'"));
  EXPECT_FALSE(fs::exists("/tmp/weft_executed"));
}

TEST(TorchFilesTest, OtherFilesAreRefusedByName) {
  EXPECT_THAT(Error("old.bin"), HasSubstr("Before version 1.6, torch.save wrote pickles, which are not read"));
  EXPECT_THAT(Error("no_dictionary.bin"), HasSubstr("its pickle is no dictionary of tensors"));
  EXPECT_THAT(Error("big_i64.bin"), HasSubstr("tensor 'big': element 0 is 2147483648, which does not fit i32"));
  EXPECT_THAT(Error("expanded.bin"),
              HasSubstr("tensor 'wide': its elements are not in 'expanded/data/0', which has 1"));
  EXPECT_THAT(Error("negated.bin"), HasSubstr("it is a view that negates or conjugates"));
  EXPECT_THAT(Error("no_storage.bin"), HasSubstr("tensor 'w': its first argument is no storage"));
  EXPECT_THAT(Error("protocol_4.bin"), HasSubstr("its pickle is not of protocol 2"));
  EXPECT_THAT(Error("compressed.bin"), HasSubstr("'x/data.pkl' is compressed or encrypted"));
  EXPECT_THAT(Error("big_endian.bin"), HasSubstr("its byteorder is not little"));
  EXPECT_THAT(Error("no_pickle.bin"), HasSubstr("it has no entry data.pkl"));
}

TEST(TorchFilesTest, ADamagedFileIsNoCrash) {
  const std::string bytes = *ReadFile(std::string(kFolder) + "kinds.bin"), path = ::testing::TempDir() + "/damaged.bin";
  for (size_t at = 0; at < bytes.size(); at += 31) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    ASSERT_TRUE(WriteFile(path, {damaged}).ok());
    static_cast<void>(Weights::ReadStored(path));
    ASSERT_TRUE(WriteFile(path, {bytes.substr(0, at)}).ok());
    EXPECT_FALSE(Weights::ReadStored(path).ok()) << at;
  }
}

}  // namespace
}  // namespace weft
