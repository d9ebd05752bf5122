// Ctrl-C, SIGTERM and a lost terminal as a question: has the user asked to stop?
#ifndef WEFT_TRAIN_INTERRUPT_H_
#define WEFT_TRAIN_INTERRUPT_H_

#include <csignal>

namespace weft {

// While one lives, the first SIGINT, SIGTERM and SIGHUP are only noted; a second one ends the program as
// usual.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  struct sigaction old_interrupt_, old_terminate_, old_hang_up_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_INTERRUPT_H_
