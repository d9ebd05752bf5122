// These functions read minGPT's model that sorts six digits, for tests.
//
//   const std::string folder = SortingGpt(data + "/gpt-nano-sort");   // a folder that ReadModel reads
#ifndef WEFT_TESTS_PEERS_SORTING_GPT_H_
#define WEFT_TESTS_PEERS_SORTING_GPT_H_

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "weft/core/safetensors.h"
#include "weft/formats/weights.h"

namespace weft {

// Decodes the array "data" of a tensor of partials.json: base64 of little-endian f32.
inline std::vector<float> Decode(const nlohmann::json& tensor) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(tensor["data"].get<std::string>(), &bytes));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// Writes minGPT's model that sorts six digits, whose files are in `data`, to a folder, and returns the folder. The
// biases of c_attn are in its authors' own file only.
inline std::string SortingGpt(const std::string& data) {
  std::string whole = absl::StrCat(::testing::TempDir(), "/gpt-nano-sort");
  std::filesystem::create_directories(whole);
  std::filesystem::copy_file(data + "/config.json", whole + "/config.json",
                             std::filesystem::copy_options::overwrite_existing);
  absl::StatusOr<Weights> weights = Weights::Read(data + "/model.safetensors");
  EXPECT_TRUE(weights.ok()) << weights.status();
  const nlohmann::json model = nlohmann::json::parse(std::ifstream(data + "/gpt-nano-sort-model.json"));
  for (int i = 0; weights.ok() && i < 3; ++i) {
    const std::string name = absl::StrCat("transformer.h.", i, ".attn.c_attn.bias");
    const std::vector<float> bias = Decode(model[name]);
    const absl::StatusOr<Tensor> tensor = weights->Add(name, {kF32, {static_cast<int64_t>(bias.size())}});
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    if (tensor.ok()) std::copy(bias.begin(), bias.end(), tensor->as<float>());
  }
  const absl::Status written = WriteSafetensors(whole + "/model.safetensors", weights->tensors());
  EXPECT_TRUE(written.ok()) << written;
  return whole;
}

}  // namespace weft

#endif  // WEFT_TESTS_PEERS_SORTING_GPT_H_
