// The programs that the ranks of mpi_test run. mpi_test starts itself under mpirun with the name of one of them.
//
//   mpirun -np 3 mpi_test exchange    // prints "3 ranks exchanged messages"
#ifndef WEFT_TESTS_RANKS_MPI_RANK_H_
#define WEFT_TESTS_RANKS_MPI_RANK_H_

#include "absl/strings/string_view.h"

namespace weft {

// Connects to the other ranks, runs the program `name`, and returns its exit code.
//   exchange: exchanges small messages between all ranks; rank 0 prints a line at the end
//   long:     sends 100 MB around a ring of all ranks, then as `exchange`
//   abort:    rank 1 calls Abort(1), and the others wait for a message
//   kill:     rank 1 ends by SIGKILL, and the others wait for a message
//   stop:     messengers with a timeout of 1 s run for 2 s, and rank 1 stops by SIGSTOP
//   hang:     rank 1 stops by SIGSTOP before it connects, and the others have a timeout of 1 s
//   late:     rank 0 ends 2 s after the others, whose messengers have a timeout of 1 s; it prints a line
int RunRank(absl::string_view name);

}  // namespace weft

#endif  // WEFT_TESTS_RANKS_MPI_RANK_H_
