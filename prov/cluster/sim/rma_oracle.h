// Judges remote reads and writes, as sim/oracle.h judges messages:
//
//   exactly once      an operation ends once; bytes that were there once are not written again
//   intact            every byte of a slot or of a reader's buffer is right, nothing else is touched
//   promises          a write that completed is in place; so is every one before a message that came,
//                     and a fenced read sees the writes before it; a write's data comes once, after it
//   access            what is not allowed ends with that error and changes nothing; what is closed is
//                     left alone
//   errors            anything else fails only if something happened to one of the two processes
//
// Another kind of remote operation is a Verb more, with what it claims and what its end must show.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/completion.h"
#include "sim/oracle.h"
#include "sim/watched_region.h"

namespace cluster::sim {

struct RmaOperation {
  enum class Verb : std::uint8_t { write, read };
  enum class State : std::uint8_t { composed, under_way, silent, succeeded, failed, abandoned };
  struct Range {
    WatchedRegion* region_watch = nullptr;
    std::size_t offset = 0;  ///< in the region; meaningless if it is forbidden
    std::size_t length = 0;
  };

  MessageNumber number = 0;
  Verb verb = Verb::write;
  State state = State::composed;
  HostNumber from = 0;
  HostNumber to = 0;
  std::uint32_t from_incarnation = 0;
  OperationStart started;
  std::vector<Range> ranges;
  std::size_t length = 0;
  bool forbidden = false;  ///< must end with Status::access
  bool reported = true;
  bool has_data = false;
  bool data_came = false;
  bool over = false;  ///< its slots are not needed any more
  bool fenced = false;
  MessageNumber reads_back = 0;  ///< read: the write whose slot it reads
  std::uint32_t readers = 0;     ///< write: reads that are to read it back
};

/// What bytes a write carries: its content differs from that of every message.
inline constexpr MessageNumber kRemoteContent = MessageNumber{1} << 48;

class RmaOracle {
 public:
  explicit RmaOracle(Incarnations& incarnations) : incarnations_(incarnations) {}

  // --- registered memory ---
  WatchedRegion& register_region(const WatchedRegion::Shape& shape);
  /// What the host exposes now.
  std::vector<WatchedRegion*> registered(HostNumber host);
  void close(WatchedRegion& region_watch);
  /// The process is no more: nothing touches its memory, and its operations are never reported.
  void incarnation_ends(HostNumber host);

  // --- operations ---
  RmaOperation& compose(RmaOperation shape);
  RmaOperation& operation(MessageNumber number) { return operations_[number - 1]; }
  void accepted(MessageNumber number);
  void not_accepted(MessageNumber number);
  /// `read`: what is in the buffer of a read.
  void ended(const protocol::Completion& completion, MessageNumber number, ConstBytes read);
  /// A write's data has come out at its target.
  void data_came(HostNumber host, std::uint32_t incarnation, const protocol::Completion& completion);

  // --- order against messages ---
  /// How many operations of this pair were accepted so far.
  std::size_t accepted_before(HostNumber from, HostNumber to) { return lanes_[{from, to}].order.size(); }
  /// A message came before which so many had been accepted.
  void message_came(const Message& message, std::size_t accepted_before);

  /// Throws if anything is under way, missing or where it should not be.
  void check_complete();
  std::string unfinished() const;
  std::uint64_t operations() const { return operations_.size(); }
  std::uint64_t succeeded() const { return succeeded_; }

 private:
  struct Lane {
    std::vector<MessageNumber> order;
    std::size_t judged = 0;  ///< everything before this one has landed or is over
  };

  bool landed(const RmaOperation& operation) const;
  bool closed(const RmaOperation& operation) const;
  bool settled(const RmaOperation& operation) const;
  void write_ended(RmaOperation& operation);
  void read_ended(RmaOperation& operation, ConstBytes read);
  void finish(RmaOperation& write);
  void look_after_silent();
  void check_fence(const RmaOperation& operation);

  Incarnations& incarnations_;
  std::deque<WatchedRegion> regions_;
  std::deque<RmaOperation> operations_;
  std::unordered_map<Pair, Lane, PairHash> lanes_;
  std::vector<MessageNumber> silent_;  ///< writes that are not reported; their slots are to be used again
  std::uint64_t succeeded_ = 0;
};

}  // namespace cluster::sim
