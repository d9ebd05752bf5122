// The ranks of a training (distributed/ranks.h) must take every decision together: a rank that stops alone would leave
// the others waiting. These functions wait for all ranks, and return the same decision on each.
//
//   const auto write = [&] { return run.SetConfig(config); };
//   WEFT_RETURN_IF_ERROR(OnFirst(ranks, write));                       // rank 0 writes, and all ranks wait
//   WEFT_RETURN_IF_ERROR(AllAgree(ranks, job->Prepare(&parameters)));  // an error on any rank ends all ranks
//   WEFT_ASSIGN_OR_RETURN(const bool stop, AnyRank(ranks, step_status, interrupt.requested()));
//   if (step % 100 == 0) WEFT_RETURN_IF_ERROR(CheckSameParameters(ranks, parameters, step));
//
// With one rank, they return the result of their argument and send nothing.
#ifndef WEFT_DISTRIBUTED_AGREEMENT_H_
#define WEFT_DISTRIBUTED_AGREEMENT_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/parameters.h"
#include "weft/distributed/ranks.h"

namespace weft {

// Calls `work` on rank 0 alone, and returns its result on every rank.
absl::StatusOr<std::string> ResultOfFirst(const Ranks& ranks, absl::FunctionRef<absl::StatusOr<std::string>()> work);
absl::Status OnFirst(const Ranks& ranks, absl::FunctionRef<absl::Status()> work);

// Returns whether any rank gave `flag`. If a rank gave an error, returns the error of the first such rank. The message
// names the rank, unless all ranks gave the same error. The ranks exchange data once.
absl::StatusOr<bool> AnyRank(const Ranks& ranks, const absl::Status& status, bool flag);
// Does the same without a flag: returns OK if all ranks give OK.
absl::Status AllAgree(const Ranks& ranks, const absl::Status& status);

// Returns `status`, which must be the same on all ranks. On ranks other than 0, removes the message, because rank 0
// prints it for all.
absl::Status PrintedByFirst(const Ranks& ranks, const absl::Status& status);

// Compares checksums of Parameters::kAll after `step` updates. All ranks compute the same bits, so a difference is a
// fault of a machine, such as memory that changed silently, or other initial weights. Returns OK or DataLoss. The
// message names the ranks that differ from the majority, and the first parameter that differs. If there is no majority,
// as with two ranks, the message names all ranks.
absl::Status CheckSameParameters(const Ranks& ranks, const Parameters& parameters, int64_t step);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_AGREEMENT_H_
