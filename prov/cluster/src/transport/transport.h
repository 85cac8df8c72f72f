// A transport: one way to reach peers, with everything that belongs to it. Shared memory (shm/), the network
// (network/) and an endpoint's way to itself (self/) are transports. The engine holds a list of them, nearest
// first, and asks all of them the same:
//
//   open()       give this peer a carrier if the transport can reach it
//   receive()    take in what has arrived, and give it to the messenger
//   transmit()   send what the turn has made ready
//   prepare_sleep(), deadline()    what wakes a thread that is about to sleep
//   close()      end everything with this peer
//
// What a transport keeps about a peer is its own (TransportPeer): no other component reads it. Peer::reach
// says whether a peer is reached, and by which transport. PeerReach owns it.
//
// A new transport needs one folder with such a class, and one factory in EngineParts::further_transports,
// which provider/machine.cc fills. test/support/dummy_transport.h is an example to copy.
//
// Duties of a transport:
//
//   peers      It keeps what it knows about a peer in Peer::parts[slot()]. Its destructor resets this entry of
//              every peer, because peers outlive transports.
//   outgoing   open() makes a carrier and calls PeerReach::reached(), or says in `reason` why it cannot.
//   incoming   When a peer calls first, the transport finds it by PeerTable::find_or_add(). If any process can
//              call, it asks AdmissionControl::admits() before. Then it calls PeerReach::called() and, unless
//              the peer has a carrier, open(). A carrier of another transport stays the peer's carrier until
//              the peer is closed: meanwhile messages come by one transport and leave by the other. If the
//              call comes from a new process under the name of an old one, see PeerReach::succeeds().
//   arrivals   Each segment passes Arrivals::deliver() (transport/arrival.h) once, intact, and in the promised
//              order. The transport keeps what the unexpected store cannot take yet (holding()).
//   tokens     Once the peer has a segment, receive() or transmit() gives its token to Messenger::acked();
//              post() never does. A carrier that acknowledges on post (carrier::Traits) has no tokens.
//   memory     Each pending access ends with one call of Messenger::rma().over(), whether or not it succeeds.
//              If the device has to know memory, the transport is a carrier::MemoryRegistrar of context.memory
//              as long as it lives. It uses a handle only for bytes of the region that it knows by the handle.
//   failure    The transport reports a lost peer by PeerTable::mark_failed(). The turn then closes the peer;
//              the transport itself does not.
//   waking     It gives each descriptor that announces work to context.waiter.watch(), or calls
//              Waiter::forbid() if there is none. deadline() tells of work that comes by time.
//
// The engine itself reads the clock, calls peers for which receives wait, and dates operations for reports.
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

/// What a turn looks at: everything, or only what was recently active and what is due.
enum class PollScope : std::uint8_t { all, due };

/// One turn of the event loop, as the transports see it.
class Turn {
 public:
  Turn(PollScope scope, std::uint32_t number, Clock& clock) : scope_(scope), number_(number), clock_(clock) {}

  PollScope scope() const { return scope_; }
  /// Turns are counted from 1 and wrap around.
  std::uint32_t number() const { return number_; }
  /// Returns the clock in ticks (Clock::ticks), read at most once a turn, and only on demand.
  std::uint64_t ticks() {
    if (!ticks_) ticks_ = clock_.ticks();
    return *ticks_;
  }
  /// True if an earlier transport has brought something in this turn.
  bool brought() const { return brought_; }
  void note(bool brought) { brought_ |= brought; }
  /// True if more turns follow soon and this one already has work: system calls and clock reads can wait.
  bool hurries() const { return brought_ && scope_ == PollScope::due && number_ % kTurnsPerFullLook != 0; }

  /// A nearer transport has peers, and a look at it costs only a read of memory. So expensive looks can be
  /// rare.
  bool cheaper_in_use = false;
  /// A multicast group waits for arrivals, so every transport looks.
  bool watchful = false;
  /// The time after everything that has arrived. A transport that reads the clock in receive() sets it, which
  /// saves another reading. After receive(), the engine sets it if it is needed.
  std::optional<Time> now;

  /// Once in this many turns the loop looks at everything, however busy it is.
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
  later,      ///< the peer can be reached, but not now: try again soon
  unreached,  ///< this transport does not reach the peer
};
/// Which peers' claims count: all, or those of the address vector.
enum class Towards : std::uint8_t { all, members };

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Returns the name that users read: "shm", "self", or the name of a link. A literal.
  virtual const char* name() const = 0;
  /// Returns false if the transport leads to this endpoint itself.
  virtual bool reaches_others() const { return true; }

  // --- peers ---
  /// Gives the peer a carrier. At first `reason` says why nearer transports could not. If this one cannot
  /// either, the call adds why (add_reason), in words that name the transport. Otherwise it may replace the
  /// text by why it was chosen.
  virtual OpenResult open(Peer& peer, std::string& reason) = 0;
  /// Looks whether a lost peer is back. Returns true if the peer is reached. A transport that has to ask the
  /// peer sends its question, and calls PeerReach::reached() when the peer answers.
  virtual bool look_for(Peer& peer) = 0;
  /// True if the peer has been asked and has not answered yet.
  virtual bool asking(const Peer&) const { return false; }
  /// See PeerReach::succeeds().
  virtual bool succeeds(Peer&, std::uint64_t /*epoch*/) { return false; }
  /// Ends everything with the peer. Does nothing if there is nothing.
  virtual void close(Peer& peer) = 0;
  /// All transports have closed the peer. Its next incarnation may be waiting here.
  virtual void after_close(Peer&) {}
  /// This endpoint closes: tells the peer.
  virtual void say_goodbye(Peer&) {}
  /// True if the transport has something open with the peer, so the peer must not be forgotten.
  virtual bool holds(const Peer& peer) const = 0;
  /// True if the peer has proved its name.
  virtual bool has_met(const Peer&) const { return false; }
  /// True if the peer counts like an endpoint of the address vector.
  virtual bool vouches_for(Peer&) { return false; }
  virtual bool vouches_for_name(const SocketAddress&) { return false; }
  /// Returns after how long the peer was given up, and by which setting, as words for the log. Empty if no
  /// timeout did it.
  virtual std::string timeout_text(const Peer&, Status) const { return {}; }
  /// Returns what the user may do about such a loss, as " (...)" for the end of the line in the log. Empty if
  /// this transport knows nothing.
  virtual const char* advice(Status) const { return ""; }
  virtual void report(const Peer&, PeerStats&) const {}

  /// Returns access to the peer's registered memory without its library, or null if there is none now. This
  /// transport reaches the peer. Messenger::fail() ends the access before the transport closes the peer.
  virtual std::unique_ptr<carrier::MemoryAccess> reach_memory(Peer&) { return nullptr; }

  // --- turns ---
  /// Takes in what has arrived. Returns true if anything has.
  virtual bool receive(Turn& turn) = 0;
  /// Called before messages that wait for space in channels are posted.
  virtual void before_pump() {}
  /// The end of a turn: sends what the turn has made ready.
  virtual void transmit(Turn&) {}
  /// An operation was posted to a peer of this transport. `more`: similar ones will follow.
  virtual void posted(Peer&, bool /*more*/) {}
  /// Segments were posted to the peer outside of operations. They leave with the next flush() or transmit().
  virtual void mark(Peer&) {}
  virtual void flush() {}
  /// Something that has arrived waits for a receive, or for space in the unexpected store.
  virtual bool holding() const { return false; }
  /// The receive or the space may be there now: delivers what can be delivered.
  virtual void receive_held(std::uint32_t /*turn*/) {}
  /// True if turns may skip this transport for ticks_between_looks(), because nothing that anybody waits for
  /// can come by it meanwhile. While all transports may be skipped and peers of this node are in use, most
  /// turns are calm: they read only the rings of shared memory (EventLoop::run_calm). A transport whose
  /// completion queue nobody reads in a calm turn returns false while it reaches a peer, unless that peer has
  /// been quiet for long.
  virtual bool may_be_skipped() const = 0;
  /// How long this transport may go without a look while it may be skipped, in ticks.
  virtual std::uint64_t ticks_between_looks() const { return kTicksPerLookAlone; }
  /// True if nothing is owed to these peers: all that was promised has left, and all that came is
  /// acknowledged.
  virtual bool quiescent(Towards) const { return true; }
  /// The endpoint closes: messages no longer wait to share a frame, and no timer allows for crowded
  /// processors.
  virtual void begin_close() {}

  // --- sleeping ---
  /// Arms what wakes a thread. One more turn follows before the thread sleeps. Returns false if the thread
  /// must not sleep now.
  virtual bool prepare_sleep() { return true; }
  /// Returns when the transport needs a turn if nothing arrives; kNever: not at all.
  virtual Time deadline() const { return kNever; }
  /// True if this transport has work that a sleeping thread does not know: it needs a turn now. Pending
  /// accesses count only if a turn can end them; if a descriptor announces their end, no turn is needed.
  virtual bool wants_turn() const { return false; }

  /// The index in Peer::parts of what this transport keeps about the peer.
  std::size_t slot() const { return slot_; }

  static constexpr std::uint64_t kTicksPerLook = 1 << 13;  ///< 2 to 8 us (Clock::ticks)
  /// The same while no peer is reached over the network: 0.7 to 2 ms. Only a first contact waits this long,
  /// and only where turns are rare, as in a rank that shares its processor with many others.
  static constexpr std::uint64_t kTicksPerLookAlone = 1 << 21;

 private:
  friend class PeerReach;

  std::size_t slot_ = 0;
};

/// Adds why one more transport does not reach a peer.
inline void add_reason(std::string& reason, const std::string& why) {
  if (!reason.empty()) reason += "; ";
  reason += why;
}

}  // namespace cluster::transport
