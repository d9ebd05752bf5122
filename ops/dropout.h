// The attributes of dropout, for attention and for the passes that recognise it.
#ifndef WEFT_OPS_DROPOUT_H_
#define WEFT_OPS_DROPOUT_H_

#include <cstdint>

namespace weft {

struct DropoutAttrs {
  double rate = 0;
  uint32_t stream = 0;
  friend bool operator==(const DropoutAttrs&, const DropoutAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("rate", rate);
    visit("stream", stream);
  }
};

}  // namespace weft

#endif  // WEFT_OPS_DROPOUT_H_
