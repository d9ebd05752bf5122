// Tags that distributed/ uses for its own messages. Messages of graphs have tags from 0 to kFirstReservedTag - 1.
//
// MPI guarantees tags up to 32767, so the reserved tags end there.
#ifndef WEFT_DISTRIBUTED_TAGS_H_
#define WEFT_DISTRIBUTED_TAGS_H_

namespace weft {

inline constexpr int kFirstReservedTag = 32760;
inline constexpr int kAllGatherTag = 32760;  // distributed/message_ops.h
inline constexpr int kRowsTag = 32765;       // distributed/weight_gathers.h
inline constexpr int kRanksTag = 32766;      // distributed/ranks.h
inline constexpr int kHeartbeatTag = 32767;  // distributed/rank_watch.h

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_TAGS_H_
