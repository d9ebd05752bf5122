// The plugin of distributed/mpi is a shared library with one function, WeftConnectMpi. It is the only part of Weft that
// needs MPI. distributed/connect_messenger.h opens it if a program was started as one of several ranks. There is one
// file for each MPI, compiled from the same source: libweft_mpi.so for Open MPI, libweft_mpich.so for MPICH.
//
//   auto* connect = reinterpret_cast<decltype(&WeftConnectMpi)>(dlsym(library, kConnectMpi));
//   const char* error = nullptr;
//   std::unique_ptr<Communicator> communicator(connect(&error));  // null: see `error`
#ifndef WEFT_DISTRIBUTED_MPI_PLUGIN_H_
#define WEFT_DISTRIBUTED_MPI_PLUGIN_H_

#include "weft/distributed/communicator.h"

namespace weft {

inline constexpr char kConnectMpi[] = "WeftConnectMpi";

}  // namespace weft

// Initialises MPI and returns a new communicator of all ranks, which the caller owns. Its destructor finalises MPI, so
// a process can connect once. On failure returns null, and `error` points to a message that is never freed.
extern "C" weft::Communicator* WeftConnectMpi(const char** error);

#endif  // WEFT_DISTRIBUTED_MPI_PLUGIN_H_
