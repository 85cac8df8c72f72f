// The oracle knows every message of the run and judges how the engines handle them:
//
//   exactly once      a message ends in one receive of an incarnation of its receiver, an operation ends once
//   order             matching follows the order of sends and of receives, for each pair and kind
//   intact            bytes, tag, data, length and sender are those of the message
//   promises          when a send completes at the level `transmit`, the peer's library has the message, and
//                     delivers it whatever becomes of the sender
//   errors            an operation fails only if sim/incarnations.h permits it
//   nothing is lost   in the end every message that must arrive has arrived
//
// The oracle sees what applications see, and the frames that engines read from their links.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "protocol/completion.h"
#include "protocol/ops.h"
#include "reliability/frame_receiver.h"
#include "sim/content.h"
#include "sim/failure.h"
#include "sim/host_pair.h"
#include "sim/incarnations.h"
#include "sim/match_order.h"
#include "sim/sim_network.h"

namespace cluster::sim {

struct Message {
  enum class State : std::uint8_t {
    composed,   ///< the engine has not accepted it yet
    under_way,  ///< its completion has not come yet
    silent,     ///< not to be reported: a completion comes only if it fails
    succeeded,
    failed,
    abandoned,  ///< its sender's process has ended
  };

  MessageNumber number = 0;
  HostNumber from = 0;
  HostNumber to = 0;
  std::uint32_t from_incarnation = 0;
  OperationStart started;                 ///< when the engine accepted it
  std::uint32_t arrived_incarnation = 0;  ///< of the receiver that read its first segment; 0: none
  std::uint32_t received_incarnation = 0;
  State state = State::composed;
  bool tagged = false;
  bool has_data = false;
  bool injected = false;
  bool reported = true;                        ///< false: a completion comes only if it fails
  bool datagram = false;                       ///< may be lost, repeated, and late
  std::uint32_t arrivals = 0;                  ///< datagrams: frames with it that an engine has read
  std::uint32_t deliveries = 0;                ///< datagrams: receives that got it
  std::uint32_t discarded_incarnation = 0;     ///< of the receiver that discarded it; 0: none has
  std::uint32_t peeked_incarnation = 0;        ///< of the receiver whose peek found it last; 0: none
  std::uint32_t lost_incarnation = 0;          ///< of the receiver that lost it: a receive failed instead
  std::uint32_t perhaps_lost_incarnation = 0;  ///< the same, but the receive had another cause to fail, too
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::size_t length = 0;
  std::uint32_t order = 0;        ///< position among those of its pair and kind
  std::size_t remote_before = 0;  ///< how many remote operations of its pair were accepted before it
  protocol::CompletionLevel completion_level = protocol::CompletionLevel::transmit;
};

struct Receive {
  HostNumber host = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t from = protocol::kAddrUnspec;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  std::size_t capacity = 0;
  bool tagged = false;
  bool cancelled = false;
  bool claimed = false;        ///< takes a message that a peek has claimed
  std::uint64_t position = 0;  ///< among the receives and claims of its host
  std::uint64_t started = 0;   ///< the moment when it was posted
};

struct OracleTotals {
  std::uint64_t delivered = 0;  ///< messages
  std::uint64_t delivered_bytes = 0;
  std::uint64_t failures = 0;             ///< sends and receives that ended with an error
  std::uint64_t datagram_arrivals = 0;    ///< frames with datagrams that engines have read
  std::uint64_t datagram_deliveries = 0;  ///< receives that got a datagram
};

/// Returns the tag of a message between these hosts. `serial` counts the tagged messages of the pair from 0.
std::uint64_t tag_of(HostNumber from, HostNumber to, std::uint32_t serial);

class Oracle {
 public:
  explicit Oracle(std::size_t hosts);

  // --- messages ---
  /// Adds a message of this shape. No engine has accepted it yet.
  Message& compose(Message shape);
  Message& message(MessageNumber number) { return messages_[number - 1]; }
  void accepted(MessageNumber number);
  void send_ended(const protocol::Completion& completion);
  /// Returns the tag of the next tagged message that will be composed for this pair.
  std::uint64_t next_tag(HostNumber from, HostNumber to) { return tag_of(from, to, lanes_[{from, to}].tags); }

  // --- receives ---
  std::uint64_t next_position() { return ++positions_; }
  /// A receive has got its message. `content`: what the buffer holds of it.
  const Message& received(const Receive& receive, const protocol::Completion& completion, ConstBytes content);
  void receive_failed(const Receive& receive, const protocol::Completion& completion);
  enum class PeekEffect : std::uint8_t { stays, claimed, gone };
  /// A peek has found a message. If the peek claims the message, the two match now. So the later receive or
  /// discard of the message is no second match.
  const Message& peeked(const Receive& peek, const protocol::Completion& completion, PeekEffect effect);
  /// Throws: a claimed message is gone when the application tries to receive it.
  void claimed_message_missing(MessageNumber number) const;
  /// A claimed message was discarded.
  void dropped(Message& message);

  // --- incarnations ---
  Incarnations& incarnations() { return incarnations_; }
  const Incarnations& incarnations() const { return incarnations_; }
  /// The process of the host has ended. No completion of its sends will come.
  void incarnation_ends(HostNumber host);
  /// An engine reads a frame that has passed the gate.
  void frame_read(HostNumber at, const Packet& packet, const wire::FrameView& view, Time now);

  // --- in the end ---
  /// Returns how many messages must still come to this host.
  std::size_t undelivered(HostNumber host, bool tagged);
  /// Throws if a send is still under way, or a message that must have arrived has not.
  void check_complete();
  /// Describes the first few messages that are still awaited.
  std::string unfinished() const;

  std::uint64_t messages() const { return messages_.size(); }
  const OracleTotals& totals() const { return totals_; }

 private:
  /// Messages from one host to another.
  struct Lane {
    std::uint32_t tags = 0;
    std::uint32_t orders[2] = {0, 0};
    std::unordered_map<std::uint32_t, MessageNumber> by_tag;
  };

  Message* find(bool has_data, std::uint64_t data, bool tagged, std::uint64_t tag, ConstBytes content);
  Message& identify(const Receive& receive, const protocol::Completion& completion, ConstBytes content);
  void match(const Receive& receive, const Message& message);
  bool takes_lost_message(const Receive& receive, const protocol::Completion& failure, HostNumber from,
                          bool has_other_cause);
  bool must_arrive(const Message& message) const;
  void datagram_read(HostNumber at, const wire::FrameView& view);

  std::vector<Message> messages_;
  Incarnations incarnations_;
  /// Assemblies of frames that came in parts, by receiver, session and sequence. Each frame has an assembly
  /// of its own. In a common assembly, late copies could displace a frame: the engine itself refuses such
  /// copies before it assembles.
  std::map<std::tuple<HostNumber, std::uint32_t, std::uint32_t>, reliability::PartAssembly> parts_;
  std::vector<std::vector<MessageNumber>> open_;  ///< by receiver: sent to it, and perhaps still to come
  std::unordered_map<Pair, Lane, PairHash> lanes_;
  MatchOrder order_;
  std::uint64_t positions_ = 0;
  OracleTotals totals_;
};

}  // namespace cluster::sim
