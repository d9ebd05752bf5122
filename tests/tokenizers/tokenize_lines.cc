// Encodes and decodes lines for compare.py: reads one text a line, as a JSON string, and writes a JSON object a line.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/text_stream.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

nlohmann::json Encoded(const Tokenizer& tokenizer, const std::string& text) {
  const absl::StatusOr<std::vector<int32_t>> ids = tokenizer.Encode(text);
  if (!ids.ok()) return {{"error", std::string(ids.status().message())}};
  const std::vector<int32_t> wrapped = tokenizer.Wrap(*ids).ids;
  TextStream stream(tokenizer, {});
  std::string streamed;
  for (const int32_t id : *ids) streamed += *stream.Add(id);
  return {{"ids", *ids},
          {"wrapped", wrapped},
          {"shown", ReplaceInvalidUtf8(*tokenizer.Decode(*ids))},
          {"all", ReplaceInvalidUtf8(*tokenizer.DecodeWithSpecial(wrapped))},
          {"streamed", streamed + stream.Finish()}};
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  const auto tokenizer = weft::LoadTokenizer(argc > 1 ? argv[1] : "");
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << weft::Encoded(**tokenizer, nlohmann::json::parse(line)).dump() << "\n";
  }
  return 0;
}
