// Judges remote reads and writes, as sim/oracle.h judges messages:
//
//   exactly once      an operation ends once; bytes that have arrived are not written again
//   intact            every byte of a slot or of a reader's buffer is right, and nothing else is changed
//   promises          a complete write is in place, and so are all writes before a message that has come; a
//                     fenced read sees the writes before it; the data of a write comes once, after the write
//   access            an operation that is not allowed ends with Status::access and changes nothing; a closed
//                     region does not change
//   errors            any other operation fails only if sim/incarnations.h permits it
//
// A new kind of remote operation needs a Verb of its own, and checks of how it ends.
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
    std::size_t offset = 0;  ///< in the region; has no meaning if the operation is forbidden
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
  std::uint32_t readers = 0;     ///< write: how many reads are to read it back
};

/// Marks the numbers of the contents of writes. So these contents differ from those of all messages.
inline constexpr MessageNumber kRemoteContent = MessageNumber{1} << 48;

class RmaOracle {
 public:
  explicit RmaOracle(Incarnations& incarnations) : incarnations_(incarnations) {}

  // --- registered memory ---
  WatchedRegion& register_region(const WatchedRegion::Shape& shape);
  /// Returns the regions that the host exposes now.
  std::vector<WatchedRegion*> registered(HostNumber host);
  void close(WatchedRegion& region_watch);
  /// The process of the host has ended. Nothing accesses its memory any more, and its operations are never
  /// reported.
  void incarnation_ends(HostNumber host);

  // --- operations ---
  RmaOperation& compose(RmaOperation shape);
  RmaOperation& operation(MessageNumber number) { return operations_[number - 1]; }
  void accepted(MessageNumber number);
  void not_accepted(MessageNumber number);
  /// `read`: the content of a read's buffer.
  void ended(const protocol::Completion& completion, MessageNumber number, ConstBytes read);
  /// The data of a write has been reported at its target.
  void data_came(HostNumber host, std::uint32_t incarnation, const protocol::Completion& completion);

  // --- order against messages ---
  /// Returns how many operations of this pair were accepted so far.
  std::size_t accepted_before(HostNumber from, HostNumber to) { return lanes_[{from, to}].order.size(); }
  /// A message has come. `accepted_before`: how many operations of its pair were accepted before it.
  void message_came(const Message& message, std::size_t accepted_before);

  /// Throws if an operation is under way, or if bytes are missing or are where they should not be.
  void check_complete();
  std::string unfinished() const;
  std::uint64_t operations() const { return operations_.size(); }
  std::uint64_t succeeded() const { return succeeded_; }

 private:
  struct Lane {
    std::vector<MessageNumber> order;
    std::size_t judged = 0;  ///< all operations before this index have landed or are over
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
  std::vector<MessageNumber> silent_;  ///< writes that are not reported; their slots will be used again
  std::uint64_t succeeded_ = 0;
};

}  // namespace cluster::sim
