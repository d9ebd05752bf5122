#include "weft/distributed/connect_messenger.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/deadline.h"
#include "weft/distributed/launch.h"

namespace weft {

absl::StatusOr<std::unique_ptr<Messenger>> ConnectMessenger(const MessengerOptions& options) {
  std::unique_ptr<Communicator> communicator;
  {
    const Deadline deadline(options.timeout_seconds,
                            absl::StrCat("weft: a rank has not answered for ", options.timeout_seconds,
                                         " s while MPI started; ending all ranks"));
    WEFT_ASSIGN_OR_RETURN(communicator, ConnectLaunchedRanks());
  }
  if (communicator == nullptr) return nullptr;
  return std::make_unique<Messenger>(std::move(communicator), options);
}

}  // namespace weft
