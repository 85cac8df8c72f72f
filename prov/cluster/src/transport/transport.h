// A transport is one way to reach peers. There are three: shared memory (shm/), the network (network/), and
// the queue through which an endpoint reaches itself (self/). A fourth one, verbs/, gives no peer a carrier.
// It reads long messages of peers that the network reaches (see assist()). The engine holds a list of its
// transports, nearest first, and calls the same methods of each:
//
//   open()      gives a peer a carrier if the transport can reach the peer.
//   receive()   delivers arrived segments to the messenger.
//   transmit()  sends what was posted during the turn.
//   prepare_sleep(), deadline()  make sure that a sleeping thread wakes when the transport has work.
//   close()     ends everything with a peer.
//
// A transport keeps its state about a peer in a TransportPeer, which no other component reads. Peer::reach
// says whether a peer is reached, and through which transport; PeerReach sets it.
//
// A new transport needs one folder with a class derived from Transport, and one factory in
// EngineParts::further_transports. provider/machine.cc fills this list. test/support/dummy_transport.h is an
// example to copy.
//
// Duties of a transport:
//
//   peers      The transport keeps what it knows about a peer in Peer::parts[slot()]. Its destructor resets
//              this entry of every peer, because peers outlive transports.
//   outgoing   open() creates a carrier and calls PeerReach::reached(), or says in `reason` why it cannot.
//   incoming   A peer calls when it opens a session or a ring to this endpoint. If unknown processes can
//              call, the transport first asks AdmissionControl::admits(). Then it finds the peer with
//              PeerTable::find_or_add(), and calls PeerReach::called(). It calls open() unless the peer has a
//              carrier. A carrier of another transport stays the peer's carrier until the peer is closed.
//              Meanwhile messages arrive through one transport and leave through the other. If a new process
//              calls under the name of an old one, see PeerReach::succeeds().
//   arrivals   Each segment passes Arrivals::deliver() (transport/arrival.h) once, intact, and in the
//              promised order. The transport keeps what the unexpected store cannot take yet (holding()).
//   tokens     Once the peer has a segment, receive() or transmit() gives the segment's token to
//              Messenger::acked(). post() must not call acked(). A carrier that acknowledges on post
//              (carrier::Traits) has no tokens.
//   memory     Each pending access ends with one call of Messenger::rma().over(), even if the access fails.
//              Some devices must know memory before they can use it. The transport of such a device is a
//              carrier::MemoryRegistrar of context.memory as long as the transport lives. The transport uses
//              the handle of a region only for bytes of this region.
//   failure    The transport reports a lost peer with PeerTable::mark_failed(). The engine closes the peer
//              before the turn ends; the transport itself does not.
//   waking     The transport gives each descriptor that announces work to context.waiter.watch(). If work may
//              arrive but no descriptor announces it, the transport calls Waiter::forbid(). deadline() says
//              when a timer needs a turn.
//
// The engine itself reads the clock, opens carriers to peers for which receives wait, and notes the age of
// operations for reports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/units.h"
#include "carrier/memory_access.h"
#include "transport/peer.h"

namespace cluster::transport {

struct PeerStats;
struct DeviceStats;

/// What a turn checks. `all`: every source of work. `due`: only recently active sources, and sources whose
/// last check was some time ago.
enum class PollScope : std::uint8_t { all, due };

/// Carries information about the current turn from the event loop to the transports, and from each transport
/// to the next.
class Turn {
 public:
  Turn(PollScope scope, std::uint32_t number, Clock& clock) : scope_(scope), number_(number), clock_(clock) {}

  PollScope scope() const { return scope_; }
  /// Returns the number of the turn. The numbers start at 1 and wrap around.
  std::uint32_t number() const { return number_; }
  /// Returns Clock::ticks(). The clock is read at most once in a turn, and only on demand.
  std::uint64_t ticks() {
    if (!ticks_) ticks_ = clock_.ticks();
    return *ticks_;
  }
  /// Returns true if a transport or a group has received something so far in this turn, or if the engine has
  /// closed a failed peer.
  bool brought() const { return brought_; }
  void note(bool brought) { brought_ |= brought; }
  /// Returns true if something has arrived in this turn and the caller will take more turns soon. If so, the
  /// transports postpone system calls and reads of the clock to a later turn.
  bool hurries() const { return brought_ && scope_ == PollScope::due && number_ % kTurnsPerFullLook != 0; }

  /// True if a nearer transport has peers and needs only memory reads to find arrivals. If so, a transport
  /// that needs a system call checks rarely for arrivals as long as it may be skipped (may_be_skipped()). So
  /// it does not slow the nearer transport.
  bool cheaper_in_use = false;
  /// True if this endpoint has a multicast group. If so, every transport checks for arrivals in every turn.
  bool watchful = false;
  /// The time at which a transport or the engine read the clock in this turn. A transport that reads the
  /// clock in receive() sets this member, so that the engine need not read the clock again. If no transport
  /// has set the member, the engine sets it when the time is needed.
  std::optional<Time> now;

  /// A turn whose number is a multiple of this one checks every source of work, even if there are many
  /// arrivals.
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
  later,      ///< the transport can reach the peer, but not yet: call open() again soon
  unreached,  ///< this transport cannot reach the peer
};
/// Selects the peers for quiescent(): all, or only those that PeerTable::is_member() accepts.
enum class Towards : std::uint8_t { all, members };

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Returns the name of the transport that users read, as a string literal: "shm", "self", or the name of a
  /// link.
  virtual const char* name() const = 0;
  /// Returns the name for this peer. It differs from name() if the transport has a better path to this peer
  /// than to most.
  virtual const char* name_for(const Peer&) const { return name(); }
  /// Returns false if the transport is never the way to another endpoint.
  virtual bool reaches_others() const { return true; }

  // --- peers ---
  /// Gives the peer a carrier. On entry, `reason` says why nearer transports do not reach the peer. If this
  /// transport does not reach the peer either, it adds its own reason (add_reason), which names the
  /// transport. Otherwise it may replace the text by the reason why it was chosen.
  virtual OpenResult open(Peer& peer, std::string& reason) = 0;
  /// Checks whether a lost peer is back. Returns true if the peer is reached now. A transport that has to ask
  /// the peer returns false after sending its question, and calls PeerReach::reached() when the peer answers.
  virtual bool look_for(Peer& peer) = 0;
  /// Returns true if look_for() has sent the peer a question that is not answered yet.
  virtual bool asking(const Peer&) const { return false; }
  /// See PeerReach::succeeds().
  virtual bool succeeds(Peer&, std::uint64_t /*epoch*/) { return false; }
  /// Ends everything that this transport has open with the peer, if there is anything.
  virtual void close(Peer& peer) = 0;
  /// Called when all transports have closed the peer. The transport may now accept the peer's next
  /// incarnation, which may already be waiting.
  virtual void after_close(Peer&) {}
  /// Tells the peer that this endpoint closes.
  virtual void say_goodbye(Peer&) {}
  /// Returns true if the transport has something open with the peer. If so, the peer table must keep the
  /// peer.
  virtual bool holds(const Peer& peer) const = 0;
  /// Returns true if the peer has proved its name to this transport, or if this endpoint has itself begun to
  /// send to the peer.
  virtual bool has_met(const Peer&) const { return false; }
  /// Returns true if the transport vouches for the peer. If so, the peer counts like a peer in the address
  /// vector.
  virtual bool vouches_for(Peer&) { return false; }
  virtual bool vouches_for_name(const SocketAddress&) { return false; }
  /// Returns a text for the log about the loss of the peer. For example, it says after how long the peer was
  /// given up, and which setting decides that. The text may be empty.
  virtual std::string loss_detail(const Peer&, Status) const { return {}; }
  /// Returns what the user may do about a loss with this status, as " (...)" for the end of the line in the
  /// log. Returns an empty text if this transport has no advice.
  virtual const char* advice(Status) const { return ""; }
  virtual void report(const Peer&, PeerStats&) const {}
  /// Appends the RDMA devices that this transport has opened.
  virtual void report_devices(std::vector<DeviceStats>&) const {}

  /// Returns an object that accesses the peer's registered memory without the peer's library, or null if that
  /// is not possible now. Called only if this transport reaches the peer. Messenger::fail() ends pending
  /// accesses and destroys the object before close() is called.
  virtual std::unique_ptr<carrier::MemoryAccess> reach_memory(Peer&) { return nullptr; }

  /// Called when another transport has given the peer a carrier. A transport whose device can read the peer's
  /// long messages sets Channel::reads. It resets the pointer in close().
  virtual void assist(Peer&) {}

  // --- turns ---
  /// Delivers arrived segments to the messenger. Returns true if anything has arrived.
  virtual bool receive(Turn& turn) = 0;
  /// Called before the messenger posts segments that had to wait for space in their carriers.
  virtual void before_pump() {}
  /// Called at the end of a turn. Sends what was posted during the turn.
  virtual void transmit(Turn&) {}
  /// Called after an operation was posted to a peer of this transport. `more`: the application has announced
  /// that further operations follow at once (FI_MORE).
  virtual void posted(Peer&, bool /*more*/) {}
  /// Called after the protocol has posted control segments to the peer. The next flush() or transmit() sends
  /// them.
  virtual void mark(Peer&) {}
  virtual void flush() {}
  /// Returns true if an arrived segment waits for a matching receive or for space in the unexpected store.
  virtual bool holding() const { return false; }
  /// Delivers the waiting segments as far as possible. Called when a receive was posted or the unexpected
  /// store has space again.
  virtual void receive_held(std::uint32_t /*turn*/) {}
  /// Returns true if turns may skip this transport for ticks_between_looks(), because nobody waits for an
  /// arrival through this transport. While every transport returns true, and rings to peers of this node are
  /// open, most turns are calm: they read only the rings of shared memory (EventLoop::run_calm). Calm turns
  /// do not read the completion queue of a device. Therefore a transport with such a queue returns false
  /// while it waits for a completion.
  virtual bool may_be_skipped() const = 0;
  /// Returns for how many ticks turns may skip this transport while may_be_skipped() returns true.
  virtual std::uint64_t ticks_between_looks() const { return kTicksPerLookAlone; }
  /// Returns true if this endpoint owes nothing to the peers that `Towards` selects: the peers have
  /// acknowledged all data, and this endpoint has acknowledged everything that has arrived from the peers.
  virtual bool quiescent(Towards) const { return true; }
  /// Called when the endpoint begins to close. From then on messages no longer wait to share a frame, and
  /// timers no longer make allowance for late turns.
  virtual void begin_close() {}

  // --- sleeping ---
  /// Arms the events of this transport that must wake a sleeping thread. The event loop takes one more turn
  /// before the thread sleeps. Returns false if the thread must not sleep now.
  virtual bool prepare_sleep() { return true; }
  /// Returns the time at which the transport needs a turn even if nothing arrives. Returns kNever if it needs
  /// none.
  virtual Time deadline() const { return kNever; }
  /// Returns true if this transport needs a turn now, for work that would not wake a sleeping thread. A
  /// pending access to a peer's memory counts only if a turn can end the access. If a descriptor announces
  /// the end of the access, no turn is needed.
  virtual bool wants_turn() const { return false; }

  /// Returns the index in Peer::parts at which this transport keeps its state about a peer.
  std::size_t slot() const { return slot_; }

  static constexpr std::uint64_t kTicksPerLook = 1 << 13;  ///< 2 to 8 us, in ticks (Clock::ticks)
  /// The value of ticks_between_looks() while no peer is reached over the network: 0.7 to 2 ms. Only the
  /// first frame of a new peer can wait this long, and only if turns are rare, as in a rank that shares its
  /// processor with many others.
  static constexpr std::uint64_t kTicksPerLookAlone = 1 << 21;

 private:
  friend class PeerReach;

  std::size_t slot_ = 0;
};

/// Adds the reason why one more transport does not reach a peer.
inline void add_reason(std::string& reason, const std::string& why) {
  if (!reason.empty()) reason += "; ";
  reason += why;
}

}  // namespace cluster::transport
