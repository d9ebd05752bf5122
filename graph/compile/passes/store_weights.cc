// Stores weights in CompileOptions::weights, and gives products of few rows their own op.
//
// A tape records weights in f32. This pass changes the dtype of parameters, and replaces the ops that read them. The
// pass stores a weight in the dtype that CompileOptions::stored or, with HeldDType, CompileOptions::weights gives, if
// all of its readers are products and embeddings. The number of rows of a product has no influence on this choice, nor
// has the kind of the readers. So graphs for prompts and for single tokens can share their parameters, and so can an
// encoder, which only looks up a table, and a decoder, which also multiplies it.
#include "weft/graph/compile/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/index/embedding.h"
#include "weft/ops/product/matmul.h"
#include "weft/ops/product/weight_matmul.h"

namespace weft {
namespace {

// Reports whether `node` is an f32 product a wᵀ, where w has rank 2 and is a parameter, or rows of a parameter.
bool IsWeightProduct(const Program& program, const Node& node) {
  if (node.op != &kMatmul) return false;
  const MatMulAttrs attrs = node.attrs.as<MatMulAttrs>();
  const TensorType &a = program.value(node.inputs[0]).type, &w = program.value(node.inputs[1]).type;
  const Node* source = &program.producer(node.inputs[1]);
  if (source->op == &kEmbedding) source = &program.producer(source->inputs[0]);
  return !attrs.transpose_a && attrs.transpose_b && a.dtype == kF32 && w.shape.rank() == 2 &&
         source->op == &kParameterOp;
}

// Reports whether inference reads the weight of a product as it is stored, although it is stored in f32.
bool FewRows(const Rewrite& rewrite, const Node& product) {
  const Program& program = rewrite.program;
  return rewrite.options.mode == kEval &&
         program.value(product.inputs[0]).type.shape.rows() <= rewrite.options.few_rows;
}

// Returns the dtype in which a weight is stored.
DType StoredDType(const Rewrite& rewrite, ParameterSpec spec) {
  const auto found = rewrite.options.stored.find(spec.name);
  if (found == rewrite.options.stored.end()) return HeldDType(spec, rewrite.options.weights);
  spec.least = found->second;
  return HeldDType(spec, found->second);
}

// Returns for each value whether it is a weight that is stored in another dtype.
std::vector<bool> StoredWeights(const Rewrite& rewrite) {
  const Program& program = rewrite.program;
  std::vector<bool> stored(program.values.size(), false);
  if (rewrite.options.weights == kF32 && rewrite.options.stored.empty()) return stored;
  for (const Node& node : program.nodes) {
    if (node.op != &kParameterOp) continue;
    const ParameterSpec& spec = program.parameter(node);
    stored[node.output(0)] = StoredDType(rewrite, spec) != spec.type.dtype;
  }
  for (const Node& node : program.nodes) {
    const bool product = IsWeightProduct(program, node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool fits = product ? i == 1 : node.op == &kEmbedding && i == 0;
      if (!fits) stored[node.inputs[i]] = false;
    }
  }
  for (ValueId root : rewrite.roots) stored[root] = false;
  return stored;
}

}  // namespace

// Rewrite matmul(a, wᵀ) to weight_matmul(a, w), where a has few rows or w is stored
// w is a parameter, or rows of a parameter that an embedding looks up
//
// Rewrite embedding(w, ids) to embedding(w, ids) in f32, where w is stored
absl::Status StoreWeights(Rewrite& rewrite) {
  Program& program = rewrite.program;
  const std::vector<bool> stored = StoredWeights(rewrite);
  for (Node& node : program.nodes) {
    if (node.op == &kParameterOp && stored[node.output(0)]) {
      SourceAttrs attrs = node.attrs.as<SourceAttrs>();
      ParameterSpec& spec = program.parameters[attrs.index];
      spec.type.dtype = StoredDType(rewrite, spec);
      attrs.type.dtype = program.values[node.output(0)].type.dtype = spec.type.dtype;
      node.attrs = Attrs::Of(attrs);
    } else if (node.op == &kEmbedding && stored[node.inputs[0]]) {
      node.attrs = Attrs::Of(EmbeddingAttrs{.widened = true});
    } else if (IsWeightProduct(program, node) && (stored[node.inputs[1]] || FewRows(rewrite, node))) {
      node.op = &kWeightMatmul;
      node.attrs = {};
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
