#include "weft/distributed/connect_messenger.h"

#include <utility>

#include "weft/core/status.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/launch.h"

namespace weft {

absl::StatusOr<std::unique_ptr<Messenger>> ConnectMessenger(const MessengerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator, ConnectLaunchedRanks());
  if (communicator == nullptr) return nullptr;
  return std::make_unique<Messenger>(std::move(communicator), options);
}

}  // namespace weft
