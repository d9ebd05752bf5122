// The attributes of matmul, for the passes that recognise it.
#ifndef WEFT_OPS_PRODUCT_MATMUL_H_
#define WEFT_OPS_PRODUCT_MATMUL_H_

namespace weft {

struct MatMulAttrs {
  bool transpose_a = false, transpose_b = false;  // of the last two axes
  bool f32_output = false;                        // of bf16 inputs
  friend bool operator==(const MatMulAttrs&, const MatMulAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("transpose_a", transpose_a);
    visit("transpose_b", transpose_b);
    if (f32_output) visit("f32_output", f32_output);  // nothing else has it
  }
};

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_MATMUL_H_
