// A GGUF file (core/gguf.h) holds the tokenizer of its model in its metadata. These functions turn that into the files
// tokenizer.json and tokenizer_config.json that mean the same, and back. LoadTokenizer("model.gguf") reads it so.
#ifndef WEFT_TEXT_TOKENIZERS_GGUF_TOKENIZER_H_
#define WEFT_TEXT_TOKENIZERS_GGUF_TOKENIZER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Tokens with these texts are special and end a text in llama.cpp (llama-vocab.cpp), whatever the keys say.
inline constexpr absl::string_view kGgufEndTexts[] = {
    "<|eot_id|>",   "<|im_end|>",         "<|end|>",     "<|return|>", "<|call|>",   "<end_of_turn>", "<|endoftext|>",
    "</s>",         "<|eom_id|>",         "<EOT>",       "_<EOT>",     "[EOT]",      "[EOS]",         "<|end_of_text|>",
    "<eos>",        "<end_of_utterance>", "<|fim_pad|>", "<fim-pad>",  "<fim_pad>",  "<PAD>",         "[PAD]",
    "<|fim_repo|>", "<|repo_name|>",      "<fim-repo>",  "<REPO>",     "<reponame>", "<|file_sep|>"};

// A tokenizer in the forms of Hugging Face.
struct TokenizerJson {
  nlohmann::json tokenizer;  // the contents of tokenizer.json
  nlohmann::json config;     // the contents of tokenizer_config.json, with the chat template
};

// Reads the tokenizer in the metadata of a GGUF file. Returns InvalidArgument, with the key, if the metadata has none
// or one that is not supported.
absl::StatusOr<TokenizerJson> TokenizerOfGguf(const nlohmann::ordered_json& metadata);

// Returns the metadata of the tokenizer in `folder`, which has a tokenizer.json. The vocabulary is filled up to `size`
// tokens. Returns InvalidArgument if GGUF can't express the tokenizer.
absl::StatusOr<nlohmann::ordered_json> GgufOfTokenizer(const std::string& folder, int64_t size);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_GGUF_TOKENIZER_H_
