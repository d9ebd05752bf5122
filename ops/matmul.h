// The attributes of matmul, for the passes that recognise it.
#ifndef WEFT_OPS_MATMUL_H_
#define WEFT_OPS_MATMUL_H_

namespace weft {

struct MatMulAttrs {
  bool transpose_a = false, transpose_b = false;  // of the last two axes
  friend bool operator==(const MatMulAttrs&, const MatMulAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("transpose_a", transpose_a);
    visit("transpose_b", transpose_b);
  }
};

}  // namespace weft

#endif  // WEFT_OPS_MATMUL_H_
