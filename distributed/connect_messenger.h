// ConnectMessenger connects a program to the other ranks if mpirun or srun started it as one of several.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Messenger> messenger, ConnectMessenger({.timeout_seconds = 60}));
//   const Ranks ranks(messenger.get());  // without a messenger: rank 0 of 1
#ifndef WEFT_DISTRIBUTED_CONNECT_MESSENGER_H_
#define WEFT_DISTRIBUTED_CONNECT_MESSENGER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "weft/distributed/messenger.h"

namespace weft {

// Returns the messenger of this rank, or null if this process was not started as one of several ranks. Errors are those
// of ConnectLaunchedRanks (distributed/launch.h). If the other ranks do not connect within options.timeout_seconds,
// prints a message and ends the process with exit code 1, so that the launcher ends all ranks.
absl::StatusOr<std::unique_ptr<Messenger>> ConnectMessenger(const MessengerOptions& options = {});

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_CONNECT_MESSENGER_H_
