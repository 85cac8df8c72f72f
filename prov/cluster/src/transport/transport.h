// A transport: one way to reach peers, with everything that belongs to it. Shared memory (shm/), the network (network/) and
// an endpoint's way to itself (self/) are transports. The engine holds them as a list, nearest first, and asks of all of
// them the same:
//
//   open()       give this peer a carrier, if it can be reached this way
//   receive()    take in what has arrived, and hand it to the messenger
//   transmit()   send what the turn has made ready
//   prepare_sleep(), deadline()    what wakes a thread that is about to sleep
//   close()      end what there is with this peer
//
// What a transport keeps about a peer is its own (TransportPeer): no other component reads it. Whether a peer is reached, and by
// which transport, is in Peer::reach, which PeerReach owns.
//
// A new transport is one folder with a class of this kind, and one call of add() in engine/transports.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/units.h"
#include "carrier/memory_access.h"
#include "transport/peer.h"

namespace cluster::transport {

struct PeerStats;

/// What a turn looks at: everything, or what has brought something lately and what is due.
enum class PollScope : std::uint8_t { all, due };

/// One turn of the event loop, as the transports see it.
class Turn {
 public:
  Turn(PollScope scope, std::uint32_t number, Clock& clock) : scope_(scope), number_(number), clock_(clock) {}

  PollScope scope() const { return scope_; }
  /// Turns are counted from 1 and wrap around.
  std::uint32_t number() const { return number_; }
  /// The clock in ticks (Clock::ticks), read once a turn, and only on demand.
  std::uint64_t ticks() {
    if (!ticks_) ticks_ = clock_.ticks();
    return *ticks_;
  }
  /// Some transport before this one has brought something in this turn.
  bool brought() const { return brought_; }
  void note(bool brought) { brought_ |= brought; }
  /// The turn will be followed by others soon, and has work already: what needs a system call or the clock can wait.
  bool hurries() const { return brought_ && scope_ == PollScope::due && number_ % kTurnsPerFullLook != 0; }

  /// A look at some nearer transport costs no more than a read of memory, and it has peers: dearer looks can be rare.
  bool cheaper_in_use = false;
  /// A multicast group waits for what comes: every transport looks.
  bool watchful = false;
  /// The time after everything that has arrived, where a transport has read it.
  std::optional<Time> now;

  /// However busy the loop is, once in so many turns nothing is left out.
  static constexpr std::uint32_t kTurnsPerFullLook = 1 << 8;

 private:
  PollScope scope_;
  std::uint32_t number_;
  Clock& clock_;
  std::optional<std::uint64_t> ticks_;
  bool brought_ = false;
};

enum class OpenResult : std::uint8_t {
  reached,    ///< the peer has a carrier (PeerReach::reached was called)
  later,      ///< the peer is in reach, and cannot be opened just now: try again soon
  unreached,  ///< not by this transport
};
/// Peers whose claims count: all, or those of the address vector.
enum class Towards : std::uint8_t { all, members };

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// The name that users read: "shm", "self", or that of a link. A literal.
  virtual const char* name() const = 0;
  /// False: it leads to this endpoint itself.
  virtual bool reaches_others() const { return true; }

  // --- peers ---
  /// Gives the peer a carrier. At first `reason` says why nearer transports could not. The call changes it to why this one
  /// cannot, or why it was chosen.
  virtual OpenResult open(Peer& peer, std::string& reason) = 0;
  /// The peer was lost: looks whether it is back. True: it is reached. A transport that has to ask the peer sends its question,
  /// and calls PeerReach::reached() when the peer answers.
  virtual bool look_for(Peer& peer) = 0;
  /// The peer has been asked, and has not answered yet.
  virtual bool asking(const Peer&) const { return false; }
  /// See PeerReach::succeeds().
  virtual bool succeeds(Peer&, std::uint64_t /*epoch*/) { return false; }
  /// Ends everything with the peer. Nothing happens if there is nothing.
  virtual void close(Peer& peer) = 0;
  /// The peer has been closed by all transports: its next incarnation may be waiting here.
  virtual void after_close(Peer&) {}
  /// This endpoint closes: tells the peer.
  virtual void say_goodbye(Peer&) {}
  /// There is something with the peer, so it must not be forgotten.
  virtual bool holds(const Peer& peer) const = 0;
  /// The peer has proved its name.
  virtual bool has_met(const Peer&) const { return false; }
  /// The peer is as well known as an endpoint of the address vector.
  virtual bool vouches_for(Peer&) { return false; }
  virtual bool vouches_for_name(const SocketAddress&) { return false; }
  /// After how long the peer was given up, and by which setting, as words for the log; empty if no timeout has done it.
  virtual std::string timeout_text(const Peer&, Status) const { return {}; }
  virtual void report(const Peer&, PeerStats&) const {}

  /// How this process reaches the peer's registered memory without its library; null: it does not (now). The peer is
  /// reached by this transport; Messenger::fail() ends what is returned before the transport closes the peer.
  virtual std::unique_ptr<carrier::MemoryAccess> reach_memory(Peer&) { return nullptr; }

  // --- turns ---
  /// Takes in what has arrived; true if there was something.
  virtual bool receive(Turn& turn) = 0;
  /// Messages wait in channels for free bytes: they are about to be posted.
  virtual void before_pump() {}
  /// The end of a turn: what it has made ready leaves.
  virtual void transmit(Turn&) {}
  /// An operation was posted to the peer, which this transport reaches; `more` of the same will follow.
  virtual void posted(Peer&, bool /*more*/) {}
  /// Segments were posted to the peer outside of operations: they leave with the next flush() or transmit().
  virtual void mark(Peer&) {}
  virtual void flush() {}
  /// Something that has arrived waits for a receive, or for space in the unexpected store.
  virtual bool holding() const { return false; }
  /// The receive or the space may be there now: delivers what can be delivered.
  virtual void receive_held(std::uint32_t /*turn*/) {}
  /// A turn finds everything that can come or be due by a look at memory.
  virtual bool silent() const { return true; }
  /// How long a silent transport may go without a look, in ticks.
  virtual std::uint64_t ticks_between_looks() const { return kTicksPerLookAlone; }
  /// Nothing is owed to these peers: what was promised has left, and what came was acknowledged.
  virtual bool quiescent(Towards) const { return true; }
  /// The endpoint closes: what waits for others to share its frame, or for a crowd of processes, waits no more.
  virtual void begin_close() {}

  // --- sleeping ---
  /// Arms what wakes a thread; one more turn follows before the thread sleeps. False: it must not sleep now.
  virtual bool prepare_sleep() { return true; }
  /// When it next wants a turn though nothing arrives; kNever: not at all.
  virtual Time deadline() const { return kNever; }
  /// This transport has work of which a sleeping thread does not know: it needs a turn now.
  virtual bool wants_turn() const { return false; }

  /// Where Peer::parts holds what this transport keeps about a peer.
  std::size_t slot() const { return slot_; }

  static constexpr std::uint64_t kTicksPerLook = 1 << 13;  ///< 2 to 8 us (Clock::ticks)
  /// The same while no peer is reached over the network: 0.7 to 2 ms. Only a first contact waits so long, and only where
  /// turns are rare, as in a rank that shares its processor with many others.
  static constexpr std::uint64_t kTicksPerLookAlone = 1 << 21;

 private:
  friend class PeerReach;

  std::size_t slot_ = 0;
};

}  // namespace cluster::transport
