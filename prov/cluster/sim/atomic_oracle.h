// Judges remote atomic operations, as sim/rma_oracle.h judges reads and writes:
//
//   exactly once     an operation ends once and is executed once (sim/digit_history.h)
//   linearizable     for every word, one order of operations explains the fetched values and the final value
//   fence            a fenced operation succeeds only after all earlier ones to the same peer have ended
//   access           an operation that is not allowed ends with Status::access and changes nothing
//   errors           any other operation fails only if its region is gone, or sim/incarnations.h permits it
//
// Several processes operate on the same words. The oracle has a clock of its own, which counts the
// operations that are accepted or succeed.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/completion.h"
#include "sim/atomic_region.h"
#include "sim/oracle.h"

namespace cluster::sim {

struct AtomicOperation {
  enum class State : std::uint8_t { composed, under_way, unreported, succeeded, failed, abandoned };

  MessageNumber number = 0;
  State state = State::composed;
  HostNumber from = 0;
  HostNumber to = 0;
  std::uint32_t from_incarnation = 0;
  OperationStart started;
  AtomicRegion* region = nullptr;
  AtomicAccess access = {};
  std::uint64_t accepted_at = 0;
  bool forbidden = false;  ///< must end with Status::access; it has no records
  bool reported = true;
  bool fenced = false;

  std::size_t length() const { return access.count * size_of(access.code.type); }
};

class AtomicOracle {
 public:
  explicit AtomicOracle(Incarnations& incarnations) : incarnations_(incarnations) {}

  AtomicRegion& register_region(const AtomicRegion::Shape& shape) { return regions_.emplace_back(shape); }
  /// Returns the region of the present process of the host, or null if it has none.
  AtomicRegion* region_of(HostNumber host);
  /// The process of the host has ended, so no completion of its operations will come.
  void incarnation_ends(HostNumber host);

  AtomicOperation& compose(AtomicOperation shape);
  AtomicOperation& operation(MessageNumber number) { return operations_[number - 1]; }
  void accepted(MessageNumber number);
  /// `results`: the bytes that a fetching operation returned.
  void ended(const protocol::Completion& completion, MessageNumber number, ConstBytes results);

  /// Throws if an operation is under way, or if no order of operations explains the values that were seen.
  void check_complete();
  std::string unfinished() const;
  std::uint64_t operations() const { return operations_.size(); }
  std::uint64_t succeeded() const { return succeeded_; }
  /// Returns the number of words whose whole history is judged (sim/word_history.h), and which several
  /// operations used.
  std::uint64_t histories() const;

 private:
  static std::string text(const AtomicOperation& operation);
  [[noreturn]] static void fail(const std::string& what, const AtomicOperation& operation);
  bool region_gone(const AtomicOperation& operation) const;
  void check_fence(const AtomicOperation& operation) const;

  Incarnations& incarnations_;
  std::deque<AtomicRegion> regions_;
  std::deque<AtomicOperation> operations_;
  std::unordered_map<Pair, std::vector<MessageNumber>, PairHash> accepted_;  ///< in the order of acceptance
  std::uint64_t time_ = 0;
  std::uint64_t succeeded_ = 0;
};

}  // namespace cluster::sim
