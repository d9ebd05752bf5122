// On x86-64, a thread computes with 0 in place of subnormal numbers, whose magnitude is below 1.2e-38 in f32, while a
// FlushSubnormals exists. On other CPUs, the class does nothing. Many x86-64 CPUs compute subnormal numbers far more
// slowly than other numbers. The moments of an optimizer decay to subnormal numbers and stay subnormal, because
// rounding keeps the smallest of them from becoming 0.
//
//   {
//     const FlushSubnormals flush;
//     kernel();
//   }
#ifndef WEFT_BASE_FLUSH_SUBNORMALS_H_
#define WEFT_BASE_FLUSH_SUBNORMALS_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace weft {

class FlushSubnormals {
 public:
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;
#if defined(__x86_64__)
  FlushSubnormals() : old_(_mm_getcsr()) { _mm_setcsr(old_ | kResults | kOperands); }
  ~FlushSubnormals() { _mm_setcsr(old_); }

 private:
  static constexpr unsigned kResults = 0x8000, kOperands = 0x40;  // bits of the register MXCSR
  const unsigned old_;
#else
  FlushSubnormals() = default;
#endif
};

}  // namespace weft

#endif  // WEFT_BASE_FLUSH_SUBNORMALS_H_
