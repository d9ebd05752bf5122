// ReadAttention computes the attention weights with which a model reads a text, a pair of texts, a translation or a
// picture: how much each position takes from each other position, in each head of each layer.
//
//   WEFT_ASSIGN_OR_RETURN(const AttentionWeights w, ReadAttention("runs/gpt-1", {.text = "In the beginning"}));
//   const AttentionMaps& maps = w.maps[0];
//   maps.at(layer, head, target, source)   // maps.targets[target] takes this part of maps.sources[source]
#ifndef WEFT_INFERENCE_MEASURE_ATTENTION_WEIGHTS_H_
#define WEFT_INFERENCE_MEASURE_ATTENTION_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

// One kind of attention in all layers of a model.
struct AttentionMaps {
  std::string kind;                           // "attention", or "encoder", "decoder" or "cross" of an encoder-decoder
  std::vector<std::string> targets, sources;  // the texts of the tokens that take, and of those from which they take
  // The indices of sources that are special tokens, such as [CLS], except the unknown token and [MASK], which stand for
  // words of the text.
  std::vector<size_t> special;
  bool without_special = false;  // whether LeaveOutSpecialTokens was called
  int64_t layers = 0, heads = 0;
  std::vector<float> weights;  // [layers, heads, T, S]; the sum over S is 1, or 0 for a target that sees no source

  // Returns the weights [S] of one target.
  absl::Span<const float> row(int64_t layer, int64_t head, int64_t target) const;
  float at(int64_t layer, int64_t head, int64_t target, int64_t source) const {
    return row(layer, head, target)[static_cast<size_t>(source)];
  }
};

// The picture that a ViT read. Source 0 is the class token; source 1 + i is patch i, row by row.
struct AttendedPicture {
  int64_t height = 0, width = 0, patch_size = 0;
  std::vector<float> pixels;  // [height, width], with the file's values
};

struct AttentionWeights {
  std::string family;                 // "gpt", "bert", "transformer" or "vit"
  std::vector<AttentionMaps> maps;    // one; of an encoder-decoder three: encoder, decoder, cross
  std::vector<std::string> produced;  // encoder-decoder: the token that follows each target of `cross`
  std::optional<AttendedPicture> picture;
};

struct AttentionQuery {
  // GPT, BERT: the text. Encoder-decoder: the source sentence. ViT: the path of a file of pictures.
  std::string text;
  // BERT: the second text of a pair. Encoder-decoder: the translation; unset: the translation of greedy search.
  std::optional<std::string> second;
  // True: `text` and `second` are token ids, separated by white space or commas, to which nothing is added. The model
  // then needs no tokenizer, and ids are the texts of tokens. Not for ViT.
  bool ids = false;
  int64_t picture = 0;                      // the index of the picture in its file
  std::optional<bool> special_tokens = {};  // Tokenizer::ReadSpecial
  bool truncate = false;                    // true: cuts texts that exceed the context; false: they are errors
  bool raise = true;                        // false: compiles without the op `attention`, to compare
  int64_t threads = 0;                      // 0: one for each core
  int64_t max_weights = int64_t{1} << 28;   // the maximum number of weights in one result; 2^28 in f32 take 1 GiB
};

// `model`: a model of any family, as for ReadModel. Returns InvalidArgument if the query does not fit the model, such
// as a pair for a GPT, or if there would be more than `max_weights` weights.
absl::StatusOr<AttentionWeights> ReadAttention(const std::string& model, const AttentionQuery& query);

// Sets the weights for `special` tokens to 0, and divides the other weights of each target by their sum.
void LeaveOutSpecialTokens(AttentionMaps* maps);

// Measures of one head, over all its targets.
struct HeadMeasures {
  double entropy = 0;   // mean entropy of a target's weights, in bits; 0: each target takes from one source only
  double distance = 0;  // mean distance |t - s| in tokens between target and source, by weight
  double min_sum = 0, max_sum = 0;  // the range of the sums of a target's weights
};
HeadMeasures Measure(const AttentionMaps& maps, int64_t layer, int64_t head);

// Returns, for each target, the source with the greatest mean weight over the heads of `layer`.
std::vector<int64_t> StrongestSources(const AttentionMaps& maps, int64_t layer);

}  // namespace weft

#endif  // WEFT_INFERENCE_MEASURE_ATTENTION_WEIGHTS_H_
