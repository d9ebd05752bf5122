#include "weft/distributed/connect_messenger.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/distributed/rank_watch.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// An MPI, its plugin, and the Debian package of the library that the plugin needs.
struct Mpi {
  const char* name;
  const char* plugin;
  const char* package;
};
constexpr Mpi kOpenMpi = {"Open MPI", "libweft_mpi.so", "libopenmpi3"};
constexpr Mpi kMpich = {"MPICH", "libweft_mpich.so", "libmpich12"};

// A launcher, and the environment variables from which it is known: all are set. The first holds the number of ranks.
struct Launcher {
  std::vector<const char*> variables;
  const Mpi* mpi;
};
// Open MPI comes first, because its mpirun may run inside a job of Slurm. A job's batch script is no rank: it has
// SLURM_NTASKS, but not PMIX_RANK.
const Launcher kLaunchers[] = {{{"OMPI_COMM_WORLD_SIZE"}, &kOpenMpi},
                               {{"PMI_SIZE", "PMI_RANK"}, &kMpich},
                               {{"SLURM_NTASKS", "SLURM_PROCID", "PMIX_RANK"}, &kOpenMpi}};

const Launcher* FindLauncher() {
  for (const Launcher& launcher : kLaunchers) {
    if (absl::c_all_of(launcher.variables, [](const char* name) { return std::getenv(name); })) return &launcher;
  }
  return nullptr;
}

absl::StatusOr<std::string> FindPlugin(const Mpi& mpi) {
  if (const char* const named = std::getenv("WEFT_MPI_PLUGIN"); named != nullptr && *named != '\0') return named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const std::vector<std::string> paths = PluginPaths(program.string(), mpi.plugin);
  for (const std::string& path : paths) {
    if (fs::exists(path, error)) return path;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("there is no ", mpi.plugin, ", which connects ranks through ", mpi.name, "; searched ",
                   absl::StrJoin(paths, ", "), "; build it with `bazel build -c opt //distributed/mpi:", mpi.plugin,
                   "`, or name its path in WEFT_MPI_PLUGIN"));
}

absl::StatusOr<std::unique_ptr<Communicator>> Connect(const Mpi& mpi, const std::string& path) {
  // Open MPI loads more libraries, which expect its names to be global. The plugin is never closed, because MPI
  // registers functions that run when the process ends.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("can't open ", path, ", which connects ranks through ", mpi.name,
                                                      ": ", dlerror(), "; Debian's package ", mpi.package,
                                                      " has the library of ", mpi.name));
  }
  auto* const connect = reinterpret_cast<decltype(&WeftConnectMpi)>(dlsym(library, kConnectMpi));
  if (connect == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is no plugin of Weft: ", dlerror()));
  }
  const char* error = nullptr;
  std::unique_ptr<Communicator> communicator(connect(&error));
  if (communicator == nullptr) return absl::FailedPreconditionError(absl::StrCat(path, ": ", error));
  return communicator;
}

}  // namespace

std::vector<std::string> PluginPaths(absl::string_view program, absl::string_view file) {
  const fs::path path{std::string(program)}, name{std::string(file)}, folder = fs::path("distributed") / "mpi";
  std::vector<std::string> paths = {(path.parent_path() / name).string(),
                                    (path.string() + ".runfiles") / ("weft" / folder / name)};
  for (fs::path above = path.parent_path(); above != above.parent_path(); above = above.parent_path()) {
    paths.push_back((above / folder / name).string());
  }
  return paths;
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectLaunchedRanks() {
  const Launcher* const launcher = FindLauncher();
  if (launcher == nullptr) return nullptr;
  const char *const variable = launcher->variables[0], *const text = std::getenv(variable);
  int size = 0;
  if (!absl::SimpleAtoi(text, &size) || size < 1) {
    return InvalidArgument("the environment variable ", variable, " is '", text,
                           "'; wanted the number of ranks, at least 1");
  }
  if (size == 1) return nullptr;
  const Mpi& mpi = *launcher->mpi;
  WEFT_ASSIGN_OR_RETURN(const std::string path, FindPlugin(mpi));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator, Connect(mpi, path));
  if (communicator->size() != size) {
    return absl::FailedPreconditionError(
        absl::StrCat("the launcher started ", size, " ranks (", variable, "), but the MPI of ", path, " knows ",
                     communicator->size(), ": the launcher belongs to another MPI, or the variable is left over"));
  }
  return communicator;
}

absl::StatusOr<std::unique_ptr<Messenger>> ConnectMessenger(double timeout_seconds) {
  std::unique_ptr<Communicator> communicator;
  {
    const Deadline deadline(timeout_seconds, absl::StrCat("weft: a rank has not answered for ", timeout_seconds,
                                                          " s while MPI started; ending all ranks"));
    WEFT_ASSIGN_OR_RETURN(communicator, ConnectLaunchedRanks());
  }
  if (communicator == nullptr) return nullptr;
  return std::make_unique<Messenger>(std::move(communicator), timeout_seconds);
}

}  // namespace weft
