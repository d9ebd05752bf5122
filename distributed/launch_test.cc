#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/distributed/connect_messenger.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Variables = std::map<std::string, std::string>;

// Connects with the variables of a launcher.
absl::StatusOr<std::unique_ptr<Communicator>> Connect(const Variables& variables) {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "SLURM_NTASKS", "SLURM_PROCID",
                                 "PMIX_RANK", "WEFT_MPI_PLUGIN"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  return ConnectLaunchedRanks();
}

std::string Error(const Variables& variables) { return std::string(Connect(variables).status().message()); }

TEST(Launch, AProgramThatWasNotLaunchedLoadsNoMpi) {
  for (const Variables& alone : {
           Variables{},
           Variables{{"OMPI_COMM_WORLD_SIZE", "1"}},
           Variables{{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}},
           Variables{{"PMI_SIZE", "4"}},
           Variables{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}},
           Variables{{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}, {"PMIX_RANK", "0"}},
       }) {
    const auto communicator = Connect(alone);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    EXPECT_EQ(*communicator, nullptr);
  }
  std::ifstream maps("/proc/self/maps");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(maps), {}), Not(HasSubstr("libmpi")));
}

TEST(Launch, TheLaunchersVariablesPickThePlugin) {
  const std::string none = "/there/is/none.so";
  const auto open_mpi = AllOf(HasSubstr("can't open /there/is/none.so"), HasSubstr("cannot open shared object file"),
                              HasSubstr("libopenmpi3"));
  EXPECT_THAT(Error({{"OMPI_COMM_WORLD_SIZE", "3"}, {"WEFT_MPI_PLUGIN", none}}), open_mpi);
  EXPECT_THAT(Error({{"SLURM_NTASKS", "3"}, {"SLURM_PROCID", "0"}, {"PMIX_RANK", "0"}, {"WEFT_MPI_PLUGIN", none}}),
              open_mpi);
  EXPECT_THAT(Error({{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}, {"WEFT_MPI_PLUGIN", none}}), HasSubstr("libmpich12"));
}

TEST(Launch, BadVariablesAreErrors) {
  EXPECT_THAT(Error({{"OMPI_COMM_WORLD_SIZE", "two"}}), HasSubstr("OMPI_COMM_WORLD_SIZE is 'two'"));
  EXPECT_THAT(Error({{"PMI_SIZE", "0"}, {"PMI_RANK", "0"}}), HasSubstr("PMI_SIZE is '0'"));
}

TEST(Launch, ThePluginMustBeOne) {
  EXPECT_THAT(Error({{"OMPI_COMM_WORLD_SIZE", "3"}, {"WEFT_MPI_PLUGIN", "libm.so.6"}}),
              AllOf(HasSubstr("libm.so.6 is no plugin of Weft"), HasSubstr("WeftConnectMpi")));
}

TEST(Launch, PluginsAreSearchedNearTheProgram) {
  EXPECT_THAT(PluginPaths("/bin/apps/weft", "p.so"),
              ElementsAre("/bin/apps/p.so", "/bin/apps/weft.runfiles/weft/distributed/mpi/p.so",
                          "/bin/apps/distributed/mpi/p.so", "/bin/distributed/mpi/p.so"));
}

}  // namespace
}  // namespace weft
