// Whose process lives in which incarnation, who has told whom of which session, and who has heard of whom:
// what a bystander at every door sees. From it follows when an operation between two processes may end with
// an error: something happened to one of them, or the network was gone for longer than anybody has to wait,
// or the two had not met.
//
// First words name no incarnation of the receiver, so they may reach another than they were meant for, and
// their answer may come when that one is over: *confusion*. Whoever is in it may give operations up until the
// two have *met*, that is until each has heard the present incarnation of the other name the session it told
// last. What is started after that has no such excuse.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sim/content.h"
#include "sim/failure.h"
#include "sim/host_pair.h"
#include "sim/sim_network.h"
#include "wire/admit.h"
#include "wire/opening.h"

namespace cluster::sim {

inline constexpr std::uint32_t kFirstIncarnation = 1;

/// When an operation with a peer was started.
struct OperationStart {
  std::uint32_t incarnation = kFirstIncarnation;  ///< of the peer, as the host knew it
  std::uint64_t moment = 0;                       ///< counts what was read at all doors
};

class Incarnations {
 public:
  explicit Incarnations(std::size_t hosts) : hosts_(hosts) {}

  void begins(HostNumber host, Time now, bool clock_went_back);
  void ends(HostNumber host) { hosts_[host].alive = false; }
  std::uint32_t of(HostNumber host) const { return hosts_[host].incarnation; }
  bool alive(HostNumber host) const { return hosts_[host].alive; }
  /// From now on the network may be gone for longer than peers wait.
  void expect_outage() { outage_ = true; }

  /// An engine says what its session is; an earlier one it may have given up.
  void session_announced(HostNumber self, HostNumber to, const wire::Opening& opening);
  /// An engine tells whoever has that session who it would be to it, and nothing else.
  void introduction_sent(HostNumber self, HostNumber to, std::uint32_t session, Time now) const;
  /// An engine looks at a frame of a flow. False: it is for nobody who lives.
  bool frame_read(HostNumber at, const Packet& packet, const wire::FrameView& view, Time now);
  /// True if the frame was sent before the receiver's process began.
  bool is_stale(HostNumber at, const Packet& packet) const { return packet.sent_at < hosts_[at].began; }

  /// Of the host `to`, as `from` knows it: it may not have heard of the latest one.
  std::uint32_t known(HostNumber from, HostNumber to) const;
  std::uint64_t moment() const { return frames_read_; }
  /// An operation with a peer is started.
  OperationStart begin(HostNumber self, HostNumber peer) const { return {known(self, peer), frames_read_}; }
  /// True if an operation that was started then may end with an error.
  bool error_permitted(HostNumber self, HostNumber peer, const OperationStart& started) const;

 private:
  /// What `to` has heard from `from`, and been told by it.
  struct Lane {
    std::uint32_t known_incarnation = 0;  ///< of `from`, as `to` last saw it...
    std::uint32_t known_by = 0;           ///< ...in this incarnation of its own
    std::uint32_t stale_call_read = 0;    ///< incarnation of `to` that saw a frame meant for an earlier one
    std::uint32_t met_ended_peer =
        0;  ///< incarnation of `to` that first heard of `from` by an incarnation that was over then
    /// Latest incarnation of `from` that has named the session `to` has told it of last...
    std::uint32_t proven_incarnation = 0;
    Time proven_time{};       ///< ...for the first time
    std::uint32_t named = 0;  ///< that session again...
    std::uint32_t named_by =
        0;  ///< ...and the incarnation that was first to name it, so that it is with that one
    std::uint32_t peer_session = 0;      ///< that session...
    std::uint32_t peer_incarnation = 0;  ///< ...the incarnation that named it...
    std::uint64_t peer_heard_at = 0;     ///< ...and when first
    std::unordered_map<std::uint32_t, std::uint32_t>
        sessions;                    ///< that `from` has told `to` of, heard or not, and their lives
    std::uint32_t last_session = 0;  ///< the one with the latest epoch: those before it may be over
    std::uint64_t last_epoch = 0;
  };
  struct Host {
    std::uint32_t incarnation = 0;
    Time began{};
    bool alive = false;
    bool clock_went_back = false;
    bool clock_ever_went_back = false;
  };

  const Lane* lane(HostNumber from, HostNumber to) const;
  bool is_of_earlier_incarnation(HostNumber host, HostNumber to, std::uint32_t session) const;
  bool is_last_session(HostNumber host, HostNumber to, std::uint32_t session) const;
  bool session_uncertain(HostNumber host, HostNumber by) const;
  bool heard_by(HostNumber host, HostNumber from, std::uint64_t moment) const;

  std::vector<Host> hosts_;
  std::unordered_map<Pair, Lane, PairHash> lanes_;
  std::uint64_t frames_read_ = 0;
  bool outage_ = false;
};

}  // namespace cluster::sim
