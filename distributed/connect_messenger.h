// ConnectMessenger connects a program to the other ranks if mpirun or srun started it as one of several. MPI is in a
// plugin (distributed/mpi). The plugin is opened only for such a program, so a program that was started alone loads no
// MPI library.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Messenger> messenger, ConnectMessenger(/*timeout_seconds=*/60));
//   const Ranks ranks(messenger.get());  // without a messenger: rank 0 of 1
#ifndef WEFT_DISTRIBUTED_CONNECT_MESSENGER_H_
#define WEFT_DISTRIBUTED_CONNECT_MESSENGER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/messenger.h"

namespace weft {

// Returns null if this process was not started as one of several ranks. The environment variables of launchers show the
// number of ranks, and which plugin to open; docs/several_machines.md lists them. Opens the plugin at the first of
// PluginPaths that exists, or the file that the variable WEFT_MPI_PLUGIN names.
//
// Errors: InvalidArgument: a variable is not a number. FailedPrecondition: the plugin can't be opened, MPI can't start,
// or MPI and the launcher disagree on the number of ranks, because they belong to different MPIs.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectLaunchedRanks();

// Returns the paths at which to search for the plugin `file`. `program`: absolute path of the program. The paths are
// beside the program, among its runfiles, and in distributed/mpi of each folder above it, such as bazel-bin.
std::vector<std::string> PluginPaths(absl::string_view program, absl::string_view file);

// Returns the messenger of this rank, or null if this process was not started as one of several ranks. Errors are those
// of ConnectLaunchedRanks. If the other ranks do not connect within `timeout_seconds`, prints a message and ends the
// process with exit code 1, so that the launcher ends all ranks.
absl::StatusOr<std::unique_ptr<Messenger>> ConnectMessenger(double timeout_seconds = 0);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_CONNECT_MESSENGER_H_
